"""Progress reports of long work."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, float], None]
"""Callback with a sentence for the user and the finished share, 0 to 1. An exception from it stops the work."""


def silent(_sentence: str, _fraction: float) -> None:
    """Ignore the progress."""


@contextmanager
def report_if_slow(progress: Progress, sentence: str, fraction: float, after_s: float = 3.0) -> Iterator[None]:
    """Report progress once, from a timer thread, if the block runs for longer than `after_s` seconds."""
    timer = threading.Timer(after_s, progress, (sentence, fraction))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # its report must not follow the caller's next one
