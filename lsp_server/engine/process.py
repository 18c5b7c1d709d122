"""Finds the processes of an engine host by the lock they have open, and ends them, orderly if they can."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil


def processes_with(lock_path: Path, program: Sequence[str]) -> list[psutil.Process]:
    """The hosts of this user that have a lock's file open; a process stays the same one when its number is used again.

    Args:
        lock_path: The lock of an address; its host has it open for as long as it lives.
        program: What clients start a host with; its last word, or `serve`, stands in a host's command line.
    """
    lock = os.path.realpath(lock_path)
    words = {program[-1], "serve"}
    return [process for process in psutil.process_iter() if _is_host(process, lock, words)]


def end(processes: Sequence[psutil.Process], grace_s: float) -> None:
    """End processes: SIGTERM, and SIGKILL for those that are still there after `grace_s` seconds or cannot react."""
    for process in processes:
        with suppress(psutil.Error):
            process.terminate()
    psutil.wait_procs([process for process in processes if not _is_stopped(process)], grace_s)
    for process in processes:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(processes, grace_s)


def _is_stopped(process: psutil.Process) -> bool:
    """Whether a process was stopped by SIGSTOP or a terminal: it acts on SIGTERM only when it is continued."""
    try:
        return bool(process.status() == psutil.STATUS_STOPPED)
    except psutil.Error:
        return False


def _is_host(process: psutil.Process, lock: str, words: set[str]) -> bool:
    try:
        return (
            process.uids().real == os.getuid()
            and not words.isdisjoint(process.cmdline())
            and any(file.path == lock for file in process.open_files())
        )
    except psutil.Error:
        return False
