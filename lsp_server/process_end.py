"""Waits for another process to end: without waking up where the system tells of it, by looking where it does not."""

from __future__ import annotations

import asyncio
import os
import sys

_LOOK_EVERY_S = 2.0


async def wait_for_end(process_id: int) -> None:
    """Return when a process is gone; it need not be a child of ours."""
    try:
        await _told(process_id)
    except NotImplementedError:
        await _seen(process_id)


async def _told(process_id: int) -> None:
    """Wait on Linux' descriptor of a process, which becomes readable at its end (`man 2 pidfd_open`).

    Raises:
        NotImplementedError: This system has none, or a loop that cannot wait for it.
    """
    if sys.platform != "linux":
        raise NotImplementedError
    try:
        descriptor = os.pidfd_open(process_id)
    except ProcessLookupError:
        return
    except OSError as error:  # a kernel before 5.3, a sandbox
        raise NotImplementedError from error
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    try:
        loop.add_reader(descriptor, ended.set)
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def _seen(process_id: int) -> None:
    import psutil  # noqa: PLC0415 - only where it is needed: it takes 20 ms

    while psutil.pid_exists(process_id):  # noqa: ASYNC110 - nothing tells of it here
        await asyncio.sleep(_LOOK_EVERY_S)
