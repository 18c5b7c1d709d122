"""Adaptive debounce: how long to wait after a keystroke, from the user's pauses and the engine's latency."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence

MAX_PAUSES = 120
"""Maximum number of pauses between keys that are kept: those of the last minutes."""
MIN_PAUSES = 12
"""Minimum number of pauses for the adaptive wait. With fewer, the configured wait is used."""
LONG_PAUSE_S = 3.0
"""Length that longer pauses count as, in seconds: in those the user thinks, so their length says little of typing."""
MIN_ANSWER_CHANCE = 0.1
"""Minimum probability that the answer still fits when it comes. It is low because a key that does not follow the
suggestion ends the request: it costs little. The user waits for every answer that comes later."""
FOLLOW_CHANCE = 0.4
"""Probability that a key follows the suggestion that is on its way, which then goes on: a cautious estimate."""
WAIT_FACTORS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
"""Candidate waits as multiples of the configured wait."""

_SHORTEST_PAUSE_S = 0.01  # pasted or repeated keys come at once
_LATENCY_WEIGHT = 0.2  # of the newest latency in the moving average


class TypingRhythm:
    """The pauses of one user and the latency of one engine.

    A request that the next key outdates wastes computing, a wait costs the user time. So the wait is the shortest
    candidate after which the answer probably still fits: until it comes, the user types nothing, or along it.
    """

    def __init__(self) -> None:
        self._pauses: deque[float] = deque(maxlen=MAX_PAUSES)
        self._last_key_s: float | None = None
        self._latency_s = 0.2

    def key(self, at_s: float) -> None:
        """Note a keystroke."""
        if self._last_key_s is not None and at_s >= self._last_key_s:
            self._pauses.append(min(at_s - self._last_key_s, LONG_PAUSE_S))
        self._last_key_s = at_s

    def answered(self, latency_s: float) -> None:
        """Note the time from a request to the engine's first text."""
        self._latency_s += _LATENCY_WEIGHT * (max(0.0, latency_s) - self._latency_s)

    def wait_s(self, configured_s: float) -> float:
        """Return how long to wait after a keystroke, in seconds: at most four times the configured wait."""
        if len(self._pauses) < MIN_PAUSES:
            return configured_s
        pauses = sorted(self._pauses)
        waits = [configured_s * step for step in WAIT_FACTORS]
        return next((wait for wait in waits if self._fits(wait, pauses) >= MIN_ANSWER_CHANCE), waits[-1])

    def _fits(self, wait: float, pauses: Sequence[float]) -> float:
        """Return the probability that an answer fits, by those of the ascending pauses that are longer than `wait`."""
        longer = pauses[bisect_right(pauses, wait) :]
        usual = max(pauses[len(pauses) // 2], _SHORTEST_PAUSE_S)
        keys = [math.ceil(max(0.0, wait + self._latency_s - pause) / usual) for pause in longer]  # before the answer
        return sum(FOLLOW_CHANCE**count for count in keys) / len(longer) if longer else 0.0
