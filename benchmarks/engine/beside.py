"""Processes that compute something else beside the timings, as a build or the tests of a project do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_COMPUTE = "number = 1\nwhile True: number = number * 31 % 1_000_003"


@contextmanager
def others_computing(count: int) -> Iterator[None]:
    """Keep `count` processes computing, each in a session of its own, like those of another terminal."""
    others = [subprocess.Popen([sys.executable, "-c", _COMPUTE], start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()
