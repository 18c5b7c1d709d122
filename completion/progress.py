"""How long work tells what it is doing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, float], None]
"""Gets a plain sentence and how much of the whole is done, 0 to 1. It may raise, which stops the work cleanly."""


def silent(_sentence: str, _fraction: float) -> None:
    """Progress for callers that show none."""


@contextmanager
def told_if_slow(progress: Progress, sentence: str, fraction: float, after_s: float = 3.0) -> Iterator[None]:
    """Say something about work that is usually over at once, if it takes longer; told from a thread of its own."""
    timer = threading.Timer(after_s, progress, (sentence, fraction))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # what it was about to say must not come after what the caller says next
