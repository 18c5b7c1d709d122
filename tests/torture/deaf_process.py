"""A process whose event loop is deaf once: it `computes`, it `blocks`, or it `starves` because others compute."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time

from tests.torture.instruments import BEAT_S, beat

COMPUTING_S = 0.5
BLOCKED_S = 1.5
STARVED_S = 1.2
_FOREVER = (sys.executable, "-ISc", "while True: pass")


def compute(seconds: float) -> None:
    """Use the processor for so long."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def block(seconds: float) -> None:
    """Wait for a lock that nobody releases, without computing."""
    lock = threading.Lock()
    with lock:
        lock.acquire(timeout=seconds)


async def starve(seconds: float) -> None:
    """Compute a little on two threads, while processes of higher priority make that take so long."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    others = [await asyncio.create_subprocess_exec(*_FOREVER) for _ in range(2)]
    os.nice(19)
    computed_s, took_s = 0.005, 0.0
    while took_s < seconds:
        computed_s *= 2
        helper = asyncio.create_task(asyncio.to_thread(compute, computed_s))
        await asyncio.sleep(BEAT_S)
        started = time.perf_counter()
        compute(computed_s)
        took_s = time.perf_counter() - started
        await helper
    for process in others:
        process.kill()
        await process.wait()


async def main(how: str) -> None:
    """Be deaf between two turns of the loop's clock."""
    clock = asyncio.create_task(beat("event loop"))
    await asyncio.sleep(2 * BEAT_S)
    if how == "computes":
        compute(COMPUTING_S)
    elif how == "blocks":
        block(BLOCKED_S)
    else:
        await starve(STARVED_S)
    await asyncio.sleep(2 * BEAT_S)
    clock.cancel()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
