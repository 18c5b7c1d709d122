"""Waits for another process to end: by a notification of the system on Linux, by polling elsewhere."""

from __future__ import annotations

import asyncio
import os
import sys

_POLL_INTERVAL_S = 2.0


def is_above(process_id: int) -> bool:
    """Return whether a process has started this one, itself or through others.

    A client in another container, or outside of WSL, gives a number that here means no process or anybody's.
    """
    import psutil  # noqa: PLC0415 - importing it takes 20 ms

    try:
        return any(process_id == each.pid for each in psutil.Process().parents())
    except psutil.Error:  # one of them ends
        return False


async def wait_for_end(process_id: int) -> None:
    """Return once a process has ended. It may be any process, not only a child of this one."""
    try:
        descriptor = _descriptor_of(process_id)
    except ProcessLookupError:
        return
    if descriptor is None:
        await _poll_until_gone(process_id)
    else:
        await _wait_on(descriptor)


def _descriptor_of(process_id: int) -> int | None:
    """Return a descriptor that becomes readable when a process ends; None where the system offers none.

    Source: `man 2 pidfd_open`.

    Raises:
        ProcessLookupError: The process has ended already.
    """
    if sys.platform == "linux":
        try:
            return os.pidfd_open(process_id)
        except ProcessLookupError:
            raise
        except OSError:  # a kernel older than 5.3, or a sandbox that forbids the call
            return None
    else:
        return None


async def _wait_on(descriptor: int) -> None:
    """Wait until a descriptor is readable, then close it."""
    readable = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def _poll_until_gone(process_id: int) -> None:
    import psutil  # noqa: PLC0415 - importing it takes 20 ms

    while psutil.pid_exists(process_id):  # noqa: ASYNC110 - the system sends no notification here
        await asyncio.sleep(_POLL_INTERVAL_S)
