"""Private folders for an engine, the engine processes that run there, and the processor time that processes used."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

_END_S = 30.0
_POLL_S = 0.02
_MODULES = frozenset({"completion.host", "completion.syntax.parsing.child"})


@contextmanager
def private_folders() -> Iterator[dict[str, str]]:
    """Yield environment variables that name fresh runtime and state folders.

    An engine that was started in these folders is ended on exit. The engine of the user is neither used nor disturbed.

    Raises:
        TimeoutError: A process of the engine did not end.
    """
    folder = Path(tempfile.mkdtemp(prefix="dl-"))  # short, because the path of a socket has a maximum length
    environment = {"DRAFTLINE_RUNTIME_DIR": str(folder / "run"), "DRAFTLINE_STATE_DIR": str(folder / "state")}
    try:
        yield environment
    finally:
        end_engines(environment)
        shutil.rmtree(folder)


def engine_processes(environment: Mapping[str, str]) -> list[psutil.Process]:
    """Return the engine hosts that run in the folders of this environment, and the children in which they parse."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if _MODULES.intersection(process.info["cmdline"] or ()):
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):  # it has ended, or is another user's
                runtime = process.environ().get("DRAFTLINE_RUNTIME_DIR")
                found += [process] if runtime == environment["DRAFTLINE_RUNTIME_DIR"] else []
    return found


def used_cpu_s(processes: Sequence[psutil.Process]) -> float:
    """Return the processor seconds that these processes, and children of theirs that ended, used since they started."""
    seconds = 0.0
    for process in processes:
        with suppress(psutil.NoSuchProcess):  # it has ended, as a trial does: its parent has its time
            seconds += sum(process.cpu_times()[:4])
    return seconds


def end_engines(environment: Mapping[str, str]) -> None:
    """End the engines that run in the folders of this environment, and wait for that.

    Raises:
        TimeoutError: A process did not end.
    """
    processes = engine_processes(environment)
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    deadline = time.monotonic() + _END_S
    while left := [process.pid for process in processes if _runs(process)]:
        if time.monotonic() > deadline:
            raise TimeoutError(f"The engine's processes {left} did not end within {_END_S:g} s.")
        time.sleep(_POLL_S)


def _runs(process: psutil.Process) -> bool:
    """Return whether a process has not ended. One whose parent has not asked how it ended has."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
