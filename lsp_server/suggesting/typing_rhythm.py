"""Adaptive debounce: how long to wait after a key, learned from this user's pauses and this engine's latency."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque

REMEMBERED = 120
"""Pauses between keys that are remembered; habits of some minutes."""
FEWEST = 12
"""With fewer pauses the configured wait is used."""
LONGEST_PAUSE_S = 3.0
"""A longer pause is thinking: it says nothing about how long a typing user pauses between two keys."""
WORTH_ASKING = 0.35
"""Ask as soon as the user stays until the answer with this chance; one that comes late still serves typing on."""
STEPS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
"""Waits that are considered, in multiples of the configured one: it stays the user's own measure, within bounds."""

_LATENCY_WEIGHT = 0.2


class TypingRhythm:
    """Pauses of one user and latencies of one engine.

    A request that the next key outdates costs the machine and shows nothing, a wait costs the user time. So the wait is
    the shortest after which the user, having paused that long, probably pauses on until the engine has answered.
    """

    def __init__(self) -> None:
        self._recent: deque[float] = deque()
        self._ascending: list[float] = []
        self._last_key_s: float | None = None
        self._latency_s = 0.2

    def key(self, at_s: float) -> None:
        """A key was typed."""
        if self._last_key_s is not None and at_s >= self._last_key_s:
            self._remember(min(at_s - self._last_key_s, LONGEST_PAUSE_S))
        self._last_key_s = at_s

    def answered(self, latency_s: float) -> None:
        """The engine's first text came after so long."""
        self._latency_s += _LATENCY_WEIGHT * (max(0.0, latency_s) - self._latency_s)

    def wait_s(self, configured_s: float) -> float:
        """How long to wait after the key that was just typed, at most four times the configured wait."""
        if len(self._ascending) < FEWEST:
            return configured_s
        waits = [configured_s * step for step in STEPS]
        return next((wait for wait in waits if self._stays(wait) >= WORTH_ASKING), waits[-1])

    def _stays(self, wait: float) -> float:
        """Chance that a pause which lasted `wait` lasts until the answer, from the remembered ones."""
        longer = len(self._ascending) - bisect_right(self._ascending, wait)
        answered = len(self._ascending) - bisect_right(self._ascending, wait + self._latency_s)
        return answered / longer if longer else 0.0

    def _remember(self, pause: float) -> None:
        self._recent.append(pause)
        insort(self._ascending, pause)
        if len(self._recent) > REMEMBERED:
            self._ascending.remove(self._recent.popleft())
