"""Stops the host some time after its last client left. A single timer does it: an idle host never wakes up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_FIRST_CLIENT_S = 30.0
"""Minimum seconds that a new host waits for its first client, which needs time to connect."""
_FAILED_S = 3.0
"""Seconds until a host whose model failed to load stops, so that the next request can start a new one."""


@dataclass(slots=True)
class IdleWatch:
    """Counts the users of the host: leases and requests. A timer runs while there are none.

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
