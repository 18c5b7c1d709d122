"""Progress reports of long work."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

Progress = Callable[[str, float], None]
"""Callback with a sentence for the user and the finished share, 0 to 1. An exception from it stops the work."""


def silent(_sentence: str, _fraction: float) -> None:
    """Ignore the progress."""


def report_if_slow(
    progress: Progress, sentence: str, fraction: float, after_s: float = 3.0
) -> AbstractContextManager[None]:
    """Report progress once, from a timer's thread, if the block runs for longer than `after_s` seconds."""
    return called_after(after_s, progress, sentence, fraction)


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
