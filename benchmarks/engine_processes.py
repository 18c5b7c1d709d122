"""Private folders for an engine, the engine processes that run there, and the processor time that processes used."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

_END_S = 30
_MODULES = {"completion.host", "completion.syntax.parser_child"}  # the engine host, and the process that parses for it


@contextmanager
def private_folders() -> Iterator[dict[str, str]]:
    """Yield environment variables that name fresh runtime and state folders.

    An engine that was started in these folders is ended on exit, and killed if it does not end within 30 s. The engine
    of the user is neither used nor disturbed.
    """
    folder = Path(tempfile.mkdtemp(prefix="dl-"))  # short, because the path of a socket has a maximum length
    environment = {"DRAFTLINE_RUNTIME_DIR": str(folder / "run"), "DRAFTLINE_STATE_DIR": str(folder / "state")}
    try:
        yield environment
    finally:
        processes = engine_processes(environment)
        for process in processes:
            with suppress(psutil.NoSuchProcess):  # it ended by itself meanwhile
                process.terminate()
        for process in psutil.wait_procs(processes, _END_S)[1]:
            process.kill()
        shutil.rmtree(folder)


def engine_processes(environment: Mapping[str, str]) -> list[psutil.Process]:
    """Return the engine hosts that run in the folders of this environment, and the processes that parse for them."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if not _MODULES.isdisjoint(process.info["cmdline"] or []):
            with suppress(psutil.Error):  # it ended meanwhile, or another user runs it
                runtime = process.environ().get("DRAFTLINE_RUNTIME_DIR")
                found += [process] if runtime == environment["DRAFTLINE_RUNTIME_DIR"] else []
    return found


def used_cpu_s(processes: Sequence[psutil.Process]) -> float:
    """Return the processor seconds that these processes, and their children that ended, used since they started."""
    return sum(sum(process.cpu_times()[:4]) for process in processes)
