"""The host's state, loading, ready, failed or stopping, and a way to wait for its changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from enum import StrEnum

from completion.progress import TimeLeft


class HostPhase(StrEnum):
    """A phase in the life of a host."""

    LOADING = "loading"
    READY = "ready"
    ERROR = "error"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class HostStatus:
    """The host's state at one moment.

    Attributes:
        percent: Loading progress, 0 to 100.
        sentence: Message for the user: what the host is doing, or what went wrong and what to do.
        code: Stable name of the error in phase ERROR, or of what makes requests fail in phase READY; else "".
        context_tokens: Number of positions that the model can attend to; 0 before it is loaded.
    """

    phase: HostPhase = HostPhase.LOADING
    percent: float = 0.0
    sentence: str = "Starting the engine."
    model: str = ""
    device: str = ""
    code: str = ""
    context_tokens: int = 0


class HostState:
    """The current status. It belongs to the event loop; other threads change it with `call_soon_threadsafe`."""

    def __init__(self, model: str) -> None:
        self.status = HostStatus(model=model)
        self._changed = asyncio.Event()
        self._ready_sentence = ""
        self._left = TimeLeft()

    def progress(self, sentence: str, fraction: float) -> None:
        """Set the loading progress, which never decreases, and say how long it takes on; `fraction` is 0 to 1."""
        sentence = self._left.added(sentence, fraction)
        self._set(replace(self.status, percent=100 * self._left.fraction, sentence=sentence))

    def ready(self, model: str, device: str, context_tokens: int, remark: str = "") -> None:
        """Enter the phase READY: the model is loaded. A remark for the user is added to the sentence."""
        self._ready_sentence = f"Ready. {remark}".rstrip()
        self._set(
            HostStatus(HostPhase.READY, 100.0, self._ready_sentence, model, device, context_tokens=context_tokens)
        )

    def trouble(self, sentence: str, code: str) -> None:
        """Say what is wrong with the model server of an engine that is ready; "" says that nothing is any more.

        The code is that of the error with which requests fail, "" if they are served without the server.
        """
        self._set(replace(self.status, sentence=sentence or self._ready_sentence, code=code))

    def failed(self, code: str, sentence: str) -> None:
        """Enter the phase ERROR: the model failed to load."""
        self._set(replace(self.status, phase=HostPhase.ERROR, code=code, sentence=sentence))

    def stopping(self) -> None:
        """Enter the phase STOPPING, which ends the leases."""
        self._set(replace(self.status, phase=HostPhase.STOPPING, sentence="The engine is stopping."))

    async def changes(self) -> AsyncIterator[HostStatus]:
        """Yield the status now and after every change, without end. A slow reader gets only the latest of them."""
        while True:
            changed = self._changed
            yield self.status
            await changed.wait()

    async def settled(self) -> HostStatus:
        """Wait until loading has succeeded or failed, or the host stops. Return the status."""
        async for status in self.changes():
            if status.phase is not HostPhase.LOADING:
                return status
        raise AssertionError("changes() has no end")

    def _set(self, status: HostStatus) -> None:
        self.status = status
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
