"""Finds the processes of an engine host by its lock file, and ends them, with SIGTERM if possible."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

STOP_S = 10.0  # an engine that handles SIGTERM needs 6 s at most


def processes_with(lock_path: Path, program: Sequence[str]) -> list[psutil.Process]:
    """Return this user's host processes that have a lock file open.

    Args:
        lock_path: Lock file of an address; its host keeps it open while it runs.
        program: Command that starts a host; a host's command line contains its last word or `serve`.
    """
    lock = os.path.realpath(lock_path)
    words = {program[-1], "serve"}
    return [process for process in psutil.process_iter() if _is_host(process, lock, words)]


def is_stopped(process: psutil.Process) -> bool:
    """Return whether a process is stopped by SIGSTOP or a terminal; it would handle SIGTERM only once continued."""
    try:
        return bool(process.status() == psutil.STATUS_STOPPED)
    except psutil.Error:
        return False


def end(processes: Sequence[psutil.Process], grace_s: float) -> None:
    """End processes with SIGTERM, and those that are stopped or still run after `grace_s` seconds with SIGKILL."""
    for process in processes:
        with suppress(psutil.Error):
            process.terminate()
    psutil.wait_procs([process for process in processes if not is_stopped(process)], grace_s)
    for process in processes:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(processes, grace_s)


def _is_host(process: psutil.Process, lock: str, words: set[str]) -> bool:
    try:
        return (
            not words.isdisjoint(process.cmdline())
            and process.username() == psutil.Process().username()
            and any(file.path == lock for file in process.open_files())
        )
    except psutil.Error:
        return False
