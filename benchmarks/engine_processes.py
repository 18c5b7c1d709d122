"""Private folders for an engine, the engine processes that run there, and the processor time that processes used."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

_END_S = 30


@contextmanager
def private_folders() -> Iterator[dict[str, str]]:
    """Yield environment variables that name fresh runtime and state folders.

    An engine that was started in these folders is ended on exit. The engine of the user is neither used nor disturbed.
    """
    folder = Path(tempfile.mkdtemp(prefix="dl-"))  # short, because the path of a socket has a maximum length
    environment = {"DRAFTLINE_RUNTIME_DIR": str(folder / "run"), "DRAFTLINE_STATE_DIR": str(folder / "state")}
    try:
        yield environment
    finally:
        for process in engine_processes(environment):
            process.send_signal(signal.SIGTERM)
            process.wait(_END_S)
        shutil.rmtree(folder)


def engine_processes(environment: Mapping[str, str]) -> list[psutil.Process]:
    """Return the engine hosts that run in the folders of this environment."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if "completion.host" in (process.info["cmdline"] or []):
            runtime = process.environ().get("DRAFTLINE_RUNTIME_DIR")
            found += [process] if runtime == environment["DRAFTLINE_RUNTIME_DIR"] else []
    return found


def used_cpu_s(processes: Sequence[psutil.Process]) -> float:
    """Return the processor seconds that these processes used since they started."""
    return sum(sum(process.cpu_times()[:2]) for process in processes)
