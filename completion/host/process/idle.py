"""Ends the host some time after its last client left, without ever waking up to look."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Whoever starts a host needs a moment to find it.
_FIRST_CLIENT_S = 30.0
# A host without a model makes room for one that may have it.
_FAILED_S = 3.0


class IdleWatch:
    """Counts who uses the host; one timer runs while nobody does."""

    def __init__(self, idle_s: float, stop: Callable[[], None]) -> None:
        """Watch for idleness.

        Args:
            idle_s: Seconds without anybody after which `stop` is called; 0 is never.
            stop: Called on the event loop.
        """
        self._idle_s = idle_s
        self._stop = stop
        self._users = 0
        self._had_client = False
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start the clock; the first client stops it."""
        self._start_timer(max(self._idle_s, _FIRST_CLIENT_S))

    def end_soon(self) -> None:
        """There is nothing to serve: end once those who wait were told."""
        told = self._had_client or self._idle_s == 0
        self._idle_s = _FAILED_S
        self._stop_timer()
        self._start_timer(_FAILED_S if told else _FIRST_CLIENT_S)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the host alive inside this block."""
        self._users += 1
        self._had_client = True
        self._stop_timer()
        try:
            yield
        finally:
            self._users -= 1
            self._start_timer(self._idle_s)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start_timer(self, delay_s: float) -> None:
        if self._idle_s > 0 and self._users == 0:
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._stop)
