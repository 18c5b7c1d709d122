"""What the host needs of an engine, and how it gets one: two small interfaces that tests fill with tiny real parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from completion.cancellation import CancelToken
from completion.progress import Progress
from completion.request import Closing, CompletionEvent, CompletionRequest, WorkspaceUpdate


class EngineLike(Protocol):
    """Completes one request at a time, on one thread."""

    def complete(self, request: CompletionRequest, cancel: CancelToken) -> Iterator[CompletionEvent]:
        """Stream cumulative suggestions; `cancel` is checked between two model steps."""

    def prepare(self, request: CompletionRequest, cancel: CancelToken) -> None:
        """Bring the cache up to date for a request that may follow."""

    def update_workspace(self, update: WorkspaceUpdate) -> None:
        """Learn what changed in a workspace."""

    def forget(self, closing: Closing) -> None:
        """Give back the memory of what nobody uses any more."""

    def close(self) -> None:
        """Write down what was learned and give everything back."""


@dataclass(frozen=True, slots=True)
class LoadedEngine:
    """A ready engine with the names that people see."""

    engine: EngineLike
    model_name: str
    device: str
    context_tokens: int = 0


EngineLoader = Callable[[Progress], LoadedEngine]
