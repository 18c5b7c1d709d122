"""Whether the host is loading, ready or broken, and who waits for a change of that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from enum import StrEnum


class HostPhase(StrEnum):
    """Where in its life the host is."""

    LOADING = "loading"
    READY = "ready"
    ERROR = "error"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class HostStatus:
    """One moment of the host.

    Attributes:
        percent: How much of the loading is done, 0 to 100.
        sentence: What happens now, or what went wrong and what to do.
        code: The error's stable name while the phase is ERROR, else "".
        context_tokens: Positions the model can see; 0 while it is not loaded.
    """

    phase: HostPhase = HostPhase.LOADING
    percent: float = 0.0
    sentence: str = "Starting the engine."
    model: str = ""
    device: str = ""
    code: str = ""
    context_tokens: int = 0


class HostState:
    """The current status, owned by the event loop; other threads change it with `call_soon_threadsafe`."""

    def __init__(self, model: str) -> None:
        self.status = HostStatus(model=model)
        self._changed = asyncio.Event()

    def progress(self, sentence: str, fraction: float) -> None:
        """Note how far the loading is, 0 to 1."""
        self._set(replace(self.status, percent=100 * fraction, sentence=sentence))

    def ready(self, model: str, device: str, context_tokens: int) -> None:
        """The model answers from now on."""
        self._set(HostStatus(HostPhase.READY, 100.0, "Ready.", model, device, context_tokens=context_tokens))

    def failed(self, code: str, sentence: str) -> None:
        """The model could not be loaded."""
        self._set(replace(self.status, phase=HostPhase.ERROR, code=code, sentence=sentence))

    def stopping(self) -> None:
        """The host ends: streams that follow the status end with it."""
        self._set(replace(self.status, phase=HostPhase.STOPPING, sentence="The engine is stopping."))

    async def changes(self) -> AsyncIterator[HostStatus]:
        """The status now and after every change, without end; quick changes are folded into one."""
        while True:
            changed = self._changed
            yield self.status
            await changed.wait()

    async def settled(self) -> HostStatus:
        """Wait until loading has ended, well or not."""
        async for status in self.changes():
            if status.phase is not HostPhase.LOADING:
                return status
        raise AssertionError("changes() has no end")

    def _set(self, status: HostStatus) -> None:
        self.status = status
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
