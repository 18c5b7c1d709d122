"""The interfaces between the host and an engine: what an engine does, and how one is loaded."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from completion.cancellation import CancelToken
from completion.edits import NextEditRequest, NextEdits
from completion.memory import Held, MemoryPart
from completion.progress import Progress
from completion.request import Closing, CompletionEvent, CompletionRequest, WorkspaceUpdate

if TYPE_CHECKING:
    from completion.decoding.joint_passes import JointPasses


class EngineLike(Protocol):
    """An engine on one thread. Between two events of a completion it may serve requests of other documents."""

    def complete(self, request: CompletionRequest, cancel: CancelToken) -> Generator[CompletionEvent]:
        """Yield cumulative suggestions, the last with `done`; `cancel` is checked between two model steps."""

    def prepare(self, request: CompletionRequest, cancel: CancelToken) -> None:
        """Bring the cache up to date for a request that may follow."""

    def next_edits(self, request: NextEditRequest, cancel: CancelToken) -> NextEdits:
        """Return what the user's last edits imply for the rest of the document."""

    def update_workspace(self, update: WorkspaceUpdate, cancel: CancelToken) -> Generator[None]:
        """Apply the changes of a workspace, and yield between pieces of it, where other calls may be made."""

    def forget(self, closing: Closing) -> None:
        """Free the memory of documents and workspaces that no client uses any more."""

    def held(self) -> Mapping[MemoryPart, Held]:
        """Return what the engine holds in memory, by part. May be called on any thread, while a request runs."""

    def close(self) -> None:
        """Save what the drafters learned and release all resources."""


class OneByOne:
    """Runs requests one after another, in the place of `JointPasses`."""

    joint_requests = 1

    def start(self, work: Callable[[], None]) -> None:
        """Run a request to its end."""
        work()

    def run(self) -> None:
        """Do nothing: no request waits."""


@dataclass(frozen=True, slots=True)
class LoadedEngine:
    """A ready engine, with the facts that `/health` reports about it.

    Attributes:
        context_tokens: Number of positions that the model can attend to; 0 if unknown.
        remark: A sentence for the user about the device; "" if there is nothing to say.
        settle: Takes memory for what is only mapped, while requests run; called once, on a thread of its own.
        rest: Gives back what only work needs, buffers and the child that parses; called on the worker's thread once the
            host is idle.
        device_failed: Whether an error means that the device failed; if so, the next engine loads without it.
        trouble: Returns a sentence on what fails although requests are served; "" if nothing does.
        now: Returns this with the facts of the model that its server has now; None if that cannot change.
        one_by_one: Returns whether none of them may run together with another now.
    """

    engine: EngineLike
    model_name: str
    device: str
    context_tokens: int = 0
    remark: str = ""
    device_failed: Callable[[Exception], bool] = lambda _error: False
    settle: Callable[[], None] = lambda: None
    rest: Callable[[], None] = lambda: None
    trouble: Callable[[], str] = lambda: ""
    now: Callable[[], LoadedEngine | None] = lambda: None
    requests: JointPasses | OneByOne = field(default_factory=OneByOne)
    one_by_one: Callable[[], bool] = lambda: False

    @property
    def joint_requests(self) -> int:
        """Maximum number of requests that may run together now."""
        return 1 if self.one_by_one() else self.requests.joint_requests


EngineLoader = Callable[[Progress], LoadedEngine]
