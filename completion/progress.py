"""Progress reports of long work."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, float], None]
"""Callback with a sentence for the user and the finished share, 0 to 1. An exception from it stops the work."""


FIRST_START = "Making the model ready for this processor: once, about a minute"
"""Progress sentence of a first start, which packs weights and compiles kernels; later starts reuse both."""
SLOW_S = 3.0
"""Time of a start from which on it is reported as a first one, in seconds."""
_KNOWN_AFTER_S = 3.0
"""Time before which nothing is said of the time left, in seconds: most starts are over, and the speed is unknown."""

_MINUTES_FROM_S = 90.0
"""Time left from which on it is said in minutes."""


def silent(_sentence: str, _fraction: float) -> None:
    """Ignore the progress."""


def share(progress: Progress, begin: float, end: float) -> Progress:
    """Return a callback for one step, whose progress covers `begin` to `end` of the whole."""
    return lambda sentence, fraction: progress(sentence, begin + fraction * (end - begin))


class TimeLeft:
    """Says how long work still takes, if its rest is as quick as what is finished of it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._started, self.fraction = clock, clock(), 0.0

    def added(self, sentence: str, fraction: float) -> str:
        """Return a sentence with the time left; without it while that is unknown."""
        self.fraction = max(self.fraction, fraction)
        past_s = self._clock() - self._started
        if past_s < _KNOWN_AFTER_S or self.fraction == 0:
            return sentence
        left_s = past_s * (1 / self.fraction - 1)
        left = f"{10 * max(1, math.ceil(left_s / 10))} s" if left_s < _MINUTES_FROM_S else f"{left_s / 60:.0f} minutes"
        return f"{sentence.rstrip('.')} (about {left} left)"


@contextmanager
def called_after(limit_s: float, action: Callable[..., None], *arguments: object) -> Iterator[None]:
    """Call an action on a timer's thread if the block runs for longer than `limit_s` seconds."""
    timer = threading.Timer(limit_s, action, arguments)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # a report must not follow the caller's next one
