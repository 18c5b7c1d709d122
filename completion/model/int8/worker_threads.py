"""Threads that share one task of compiled code, which releases the interpreter's lock."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path

from completion.free_memory import CONTAINER


class WorkerThreads:
    """The calling thread and count − 1 others.

    Attributes:
        count: Number of threads that run a task, the caller's included.
    """

    __slots__ = ("_pool", "count")

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool = ThreadPoolExecutor(max(count - 1, 1), thread_name_prefix="draftline-forward")

    def run(self, task: Callable[[int], None]) -> None:
        """Call task(0) here and task(1) .. task(count − 1) on the other threads; return when all have ended.

        Raises:
            Exception: What the first of them raised, after all have ended: they share memory of the caller's.
        """
        others = [self._pool.submit(task, thread) for thread in range(1, self.count)]
        try:
            task(0)
        finally:
            wait(others)
        for other in others:
            other.result()


def usable_threads(container: Path = CONTAINER) -> int:
    """Return the number of cores that this process may use; of a Mac's, the fast ones: slow ones finish stages late.

    A container may have the time of fewer cores than it sees. With more threads it uses that up while they wait for
    each other, and then stands still until the next tenth of a second.
    """
    fast = macos_number("hw.perflevel0.logicalcpu") if sys.platform == "darwin" else 0
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # no container, or one without a limit
        time, of_each = map(int, (container / "cpu.max").read_text().split())
        usable = min(usable, max(1, time // of_each))
    return fast or usable


def macos_number(name: str) -> int:
    """Return a number that macOS's sysctl knows by this name; 0 if it knows none."""
    value, size = ctypes.c_int(0), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
    ask = ctypes.CDLL(None).sysctlbyname
    failed = ask(name.encode(), ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0))
    return 0 if failed else value.value
