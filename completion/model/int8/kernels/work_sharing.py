"""Sharing of a forward pass among threads: threads claim the items of a stage, and wait until the stage is finished.

No thread owns items in advance. So a thread that the system has paused only delays the item it works on, and a pass
works with any number of threads, even if some arrive late or never.

Items that are neighbours in memory can be claimed in ranges, one for each thread (eight at most), so that what the
processor fetches ahead is what the thread reads next. A thread whose range is finished goes on with those of others.
"""

from __future__ import annotations

import sys

import numpy as np
from numba import njit, types

from completion.model.int8.kernels.instructions import INSTRUCTIONS
from completion.model.int8.kernels.sizes import COUNTERS
from completion.model.int8.kernels.vector import INT, LONG, call, operation, pointer

_FINISHED = 64
"""Bytes from a stage's claimed counts to its finished count."""
_RANGES = 8
"""Maximum number of ranges of a stage: their claimed counts share a cache line."""

_add = operation(types.int64, types.int64, types.int64)(
    lambda b, at, value: b.atomic_rmw("add", pointer(b, at, 0, LONG), value, "acq_rel")
)
_read = operation(types.int64, types.int64)(lambda b, at: b.load_atomic(pointer(b, at, 0, LONG), "acquire", 8))
_pause = operation(types.int64, types.int64)(lambda b, value: (INSTRUCTIONS.pause(b), value)[1])

_YIELD = "SwitchToThread" if sys.platform == "win32" else "sched_yield"
_yield_core = operation(types.int64, types.int64)(lambda b, value: (call(b, _YIELD, INT), value)[1])
_SPINS = 1024
"""Number of pauses, some 20 µs, before a waiting thread yields: the thread it waits for may need this core."""


@njit(inline="always")
def claim(counters: int, stage: int) -> int:
    """Return the next item of a stage; a number past the last item if all are claimed."""
    return _add(counters + stage * 8 * COUNTERS, np.int64(1))


@njit(inline="always")
def claim_near(counters: int, stage: int, items: int, thread: int, ranges: int) -> int:
    """Return the next item of the thread's range of a stage, or of another range; `items` if all are claimed.

    All calls for a stage have the same number of ranges; with one it is `claim`.
    """
    count = min(ranges, _RANGES)
    for n in range(count):
        part = (thread + n) % count
        first, end = items * part // count, items * (part + 1) // count
        item = first + _add(counters + stage * 8 * COUNTERS + 8 * part, np.int64(1))
        if item < end:
            return item
    return items


@njit(inline="always")
def finish(counters: int, stage: int) -> None:
    """Report that a claimed item's results are written."""
    _add(counters + stage * 8 * COUNTERS + _FINISHED, np.int64(1))


@njit(inline="always")
def wait(counters: int, stage: int, items: int) -> None:
    """Return when every item of a stage is finished."""
    spins = 0
    while _read(counters + stage * 8 * COUNTERS + _FINISHED) < items:
        spins += 1
        if spins % _SPINS == 0:
            _yield_core(np.int64(0))
        else:
            _pause(np.int64(0))


@njit(inline="always")
def is_stopped(flag: int) -> bool:
    """Return whether the int64 at an address is set.

    A thread that reads it before another one goes on alone, and claims all items up to its next look.
    """
    return _read(flag) != 0
