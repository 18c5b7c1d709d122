"""Waits for another process to end: without waking up where the system tells of it, by looking where it does not."""

from __future__ import annotations

import asyncio
import os
import sys

_LOOK_EVERY_S = 2.0


async def wait_for_end(process_id: int) -> None:
    """Return when a process is gone; it need not be a child of ours."""
    try:
        descriptor = _descriptor_of(process_id)
    except ProcessLookupError:
        return
    if descriptor is None:
        await _look_until_gone(process_id)
    else:
        await _wait_on(descriptor)


def _descriptor_of(process_id: int) -> int | None:
    """Linux' descriptor of a process, which becomes readable at its end (`man 2 pidfd_open`); None where there is none.

    Raises:
        ProcessLookupError: The process is gone.
    """
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(process_id)
    except ProcessLookupError:
        raise
    except OSError:  # a kernel before 5.3, a sandbox
        return None


async def _wait_on(descriptor: int) -> None:
    """Wait until a descriptor is readable, and close it."""
    readable = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def _look_until_gone(process_id: int) -> None:
    import psutil  # noqa: PLC0415 - only where it is needed: it takes 20 ms

    while psutil.pid_exists(process_id):  # noqa: ASYNC110 - nothing tells of it here
        await asyncio.sleep(_LOOK_EVERY_S)
