"""The host's state, loading, ready, failed or stopping, a way to wait for its changes, and its end once it is idle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
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


_FIRST_CLIENT_S = 30.0
"""Minimum seconds that a new host waits for its first client, which needs time to connect."""
_FAILED_S = 3.0
"""Seconds until a host whose model failed to load stops, so that the next request can start a new one."""


@dataclass(slots=True)
class IdleWatch:
    """Counts the users of the host, leases and requests, and stops it some time after the last one left.

    A single timer runs while there are none: an idle host never wakes up.

    Attributes:
        idle_s: Seconds without users after which `stop` is called; 0 means never.
        stop: Stops the host; called on the event loop.
    """

    idle_s: float
    stop: Callable[[], None]
    _users: int = 0
    _had_client: bool = False
    _timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start the timer; the first client stops it."""
        self._start_timer(max(self.idle_s, _FIRST_CLIENT_S))

    def end_soon(self) -> None:
        """Stop the host soon, because its model failed to load. A first client still gets time to read the error."""
        is_error_read = self._had_client or self.idle_s == 0
        self.idle_s = _FAILED_S
        self._stop_timer()
        self._start_timer(_FAILED_S if is_error_read else _FIRST_CLIENT_S)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the host alive within the block."""
        self._users += 1
        self._had_client = True
        self._stop_timer()
        try:
            yield
        finally:
            self._users -= 1
            self._start_timer(self.idle_s)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start_timer(self, delay_s: float) -> None:
        if self.idle_s > 0 and self._users == 0:
            self._timer = asyncio.get_running_loop().call_later(delay_s, self.stop)
