"""How fast draftline starts, and what a second editor window costs: `python -m benchmarks.startup`.

Everything runs in folders of its own, so an engine of the user's is neither used nor disturbed; the model's cache is
the user's, warm if it was converted before.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.language_client import LanguageClient
from lsp_server.engine.client import EngineClient
from lsp_server.engine.launcher import EngineOptions

_MB = 1e6
_LONGEST_START_S = 600
_SETTLING_S = 2


@contextmanager
def private_folders() -> Iterator[dict[str, str]]:
    """Environment variables of a fresh runtime and state folder; an engine that was started there is ended."""
    folder = Path(tempfile.mkdtemp(prefix="dl-"))  # short: a socket's path has a limit
    environment = {"DRAFTLINE_RUNTIME_DIR": str(folder / "run"), "DRAFTLINE_STATE_DIR": str(folder / "state")}
    os.environ.update(environment)
    try:
        yield environment
    finally:
        for process in engine_processes(environment):
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        shutil.rmtree(folder)


def engine_processes(environment: Mapping[str, str]) -> list[psutil.Process]:
    """The engine hosts that run in these folders."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if "completion.host" in (process.info["cmdline"] or []):
            own = process.environ().get("DRAFTLINE_RUNTIME_DIR") == environment["DRAFTLINE_RUNTIME_DIR"]
            found += [process] if own else []
    return found


def measure_initialize_ms(environment: Mapping[str, str], runs: int) -> list[float]:
    """From the start of the server's process to its reply to `initialize`."""
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        with LanguageClient(environment) as client:
            client.initialize()
            times.append(1e3 * (time.perf_counter() - started))
    return times


def measure_ready_s(runs: int) -> list[float]:
    """From no engine at all to a loaded model."""

    async def start_once() -> float:
        client = EngineClient(EngineOptions())
        started = time.perf_counter()
        pid = (await asyncio.wait_for(client.connect(), _LONGEST_START_S)).pid
        ready_s = time.perf_counter() - started
        await client.close()
        os.kill(pid, signal.SIGTERM)
        await asyncio.to_thread(psutil.Process(pid).wait, 30)
        return ready_s

    return [asyncio.run(start_once()) for _ in range(runs)]


@dataclass(frozen=True, slots=True)
class SecondWindow:
    """What a second editor window costs.

    Attributes:
        extra_mb: Resident memory that its server adds.
        torch_imported: Whether that server holds torch.
        idle_cpu_percent: Of one core, both servers and the engine together, while nobody types.
    """

    extra_mb: float
    torch_imported: bool
    idle_cpu_percent: float


def measure_second_window(environment: Mapping[str, str], idle_s: float) -> SecondWindow:
    """Open two windows on one engine, then watch them for a while."""

    def resident() -> int:
        """Bytes of all engines."""
        return sum(process.memory_info().rss for process in engine_processes(environment))

    with LanguageClient(environment) as first:
        _open_window(first)
        before = resident()
        with LanguageClient(environment) as second:
            _open_window(second)
            server = psutil.Process(second.process.pid)
            extra = server.memory_info().rss + resident() - before
            torch = any("torch" in mapped.path for mapped in server.memory_maps())
            everybody = [server, psutil.Process(first.process.pid), *engine_processes(environment)]
            return SecondWindow(extra / _MB, torch, _cpu_percent(everybody, idle_s))


def _cpu_percent(processes: list[psutil.Process], seconds: float) -> float:
    def used_s() -> float:
        return sum(sum(process.cpu_times()[:2]) for process in processes)

    time.sleep(_SETTLING_S)
    before = used_s()
    time.sleep(seconds)
    return 100 * (used_s() - before) / seconds


def _open_window(client: LanguageClient) -> None:
    client.initialize()
    client.notify("initialized", {})
    client.wait_for_status("ready")


def main() -> None:
    """Measure, print a table and one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="server starts")
    parser.add_argument("--engine-runs", type=int, default=3, help="engine starts")
    parser.add_argument("--idle-seconds", type=float, default=20, help="how long to watch idle processes")
    options = parser.parse_args()
    with private_folders() as environment:
        initialize_ms = measure_initialize_ms(environment, options.runs)
        ready_s = measure_ready_s(options.engine_runs)
        window = measure_second_window(environment, options.idle_seconds)
    result = {
        "initialize_ms": round(statistics.median(initialize_ms), 1),
        "initialize_worst_ms": round(max(initialize_ms), 1),
        "model_ready_s": round(statistics.median(ready_s), 2),
        "model_ready_worst_s": round(max(ready_s), 2),
        "second_window_extra_mb": round(window.extra_mb, 1),
        "torch_imported_by_server": window.torch_imported,
        "idle_cpu_percent": round(window.idle_cpu_percent, 3),
    }
    for name, value in result.items():
        print(f"{name:28} {value}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
