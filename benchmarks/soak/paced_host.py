"""A host whose engine sends an event each millisecond, as a GPU does, and runs no model: `python paced_host.py ...`."""

import sys
import time
from collections.abc import Generator, Mapping
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2])]

from completion.cancellation import CancelToken  # noqa: E402 - after the path is set
from completion.edits import NextEditRequest, NextEdits  # noqa: E402
from completion.host.engine_protocol import LoadedEngine  # noqa: E402
from completion.host.process.lifetime import parse_settings, serve  # noqa: E402
from completion.memory import Held, MemoryPart  # noqa: E402
from completion.progress import Progress  # noqa: E402
from completion.request import (  # noqa: E402
    Closing,
    CompletionEvent,
    CompletionRequest,
    Statistics,
    StopReason,
    Suggestion,
    WorkspaceUpdate,
)

EVENT_S = 0.001


class PacedEcho:
    """Streams one character more with each event, up to `max_tokens`."""

    def complete(self, request: CompletionRequest, cancel: CancelToken) -> Generator[CompletionEvent]:
        """Stream the events."""
        text = "x" * request.max_tokens
        for end in range(1, len(text)):
            time.sleep(EVENT_S)
            cancel.raise_if_cancelled()
            yield CompletionEvent((Suggestion(text[:end]),))
        last, reason = (Suggestion(text),), StopReason.LINE_END
        yield CompletionEvent(last, done=True, stop_reason=reason, statistics=Statistics(), whole=1)

    def prepare(self, request: CompletionRequest, cancel: CancelToken) -> None:
        """Prepare nothing."""

    def next_edits(self, request: NextEditRequest, cancel: CancelToken) -> NextEdits:  # noqa: ARG002 - the protocol's
        """Return none."""
        return NextEdits()

    def update_workspace(self, update: WorkspaceUpdate, cancel: CancelToken) -> Generator[None]:
        """Read nothing."""
        for _ in update.changed:
            cancel.raise_if_cancelled()
            yield

    def forget(self, closing: Closing) -> None:
        """Forget nothing."""

    def held(self) -> Mapping[MemoryPart, Held]:
        """Hold nothing."""
        return {}

    def close(self) -> None:
        """Write nothing."""

    def load(self, progress: Progress) -> LoadedEngine:
        """Return the engine, at once."""
        progress("Ready to stream.", 0.5)
        return LoadedEngine(self, "paced", "test", context_tokens=1000)


if __name__ == "__main__":
    sys.exit(serve(parse_settings(sys.argv[1:]), PacedEcho().load, on_listening=lambda _: None))
