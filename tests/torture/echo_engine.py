"""An engine whose suggestion tells which text it was asked about: a stale or misplaced item then betrays itself."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Generator, Mapping

from completion.cancellation import CancelToken
from completion.edits import NextEditRequest, NextEdits
from completion.host.engine_protocol import LoadedEngine
from completion.memory import Held, MemoryPart
from completion.progress import Progress
from completion.request import (
    Closing,
    CompletionEvent,
    CompletionRequest,
    Statistics,
    StopReason,
    Suggestion,
    WorkspaceUpdate,
)
from tests.torture.canaries import has_secret
from tests.torture.instruments import report

_HEADS = ("value = ", "f(a)[0]", "  x\n    y", '"text"', "é😀 ", "")


def echo(prefix: str, suffix: str) -> str:
    """What is suggested between two texts; it ends with their digest."""
    digest = hashlib.blake2b(f"{prefix}\0{suffix}".encode("utf-8", "replace"), digest_size=8).hexdigest()
    return f"{_HEADS[int(digest[0], 16) % len(_HEADS)]}e{digest}"


class EchoEngine:
    """Streams the echo of a request in three pieces.

    Args:
        pace_s: Time before each event, in seconds. With a pace there is an event for each character.
    """

    def __init__(self, pace_s: float = 0.0) -> None:
        self._pace_s = pace_s

    def complete(self, request: CompletionRequest, cancel: CancelToken) -> Generator[CompletionEvent]:
        """Stream the events."""
        text = echo(request.prefix, request.suffix)
        for end in range(1, len(text) + 1) if self._pace_s else (3, len(text) // 2, len(text)):
            time.sleep(self._pace_s)
            cancel.raise_if_cancelled()
            yield CompletionEvent((Suggestion(text[:end]),))
        yield CompletionEvent(
            (Suggestion(text),), done=True, stop_reason=StopReason.LINE_END, statistics=Statistics(), whole=1
        )

    def prepare(self, request: CompletionRequest, cancel: CancelToken) -> None:
        """Nothing to prepare."""
        cancel.raise_if_cancelled()

    def update_workspace(self, update: WorkspaceUpdate, cancel: CancelToken) -> Generator[None]:
        """Report a secret that was read."""
        for file in update.changed:
            yield
            cancel.raise_if_cancelled()
            if has_secret(file.text):
                report("leaks", what=f"a secret of {file.path!r} was sent to the engine")

    def next_edits(self, request: NextEditRequest, cancel: CancelToken) -> NextEdits:
        """Propose none."""
        return NextEdits()

    def forget(self, closing: Closing) -> None:
        """Nothing to forget."""

    def held(self) -> Mapping[MemoryPart, Held]:
        """Nothing is held."""
        return {}

    def close(self) -> None:
        """Nothing to write."""

    def load(self, progress: Progress) -> LoadedEngine:
        """The engine, at once."""
        progress("Listening for echoes.", 0.5)
        return LoadedEngine(self, "echo", "test", context_tokens=1000)
