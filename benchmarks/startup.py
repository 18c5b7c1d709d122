"""`python -m benchmarks.startup`: how fast draftline starts, and what a second editor window costs.

All processes run in private folders, so that the engine of the user is neither used nor disturbed. The model comes from
the user's cache, so the start is warm if the model was converted before. The modules' bytecode is kept, as an
installation has it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import psutil

from benchmarks.engine_processes import engine_processes, private_folders, used_cpu_s
from benchmarks.language_client import READY_S, ServerProcess
from lsp_server.engine.client import EngineClient
from lsp_server.engine.launcher import EngineOptions

_MB = 1e6
_STEADY_S, _STEADY_BYTES = 1.0, 1_000_000  # pause between two readings of memory that does not grow any more
_SETTLING_S = 2


@asynccontextmanager
async def started_server(environment: Mapping[str, str]) -> AsyncIterator[ServerProcess]:
    """Yield a server that has replied to `initialize`; end it on exit."""
    server = ServerProcess({})
    await server.start(environment)
    try:
        yield server
    finally:
        await server.stop()


async def measure_initialize_ms(environment: Mapping[str, str], runs: int) -> list[float]:
    """Return the times from the start of a server process to its reply to `initialize`.

    The first run is not measured, because it sets up the client in this process.
    """
    times = []
    for _ in range(runs + 1):
        started = time.perf_counter()
        async with started_server(environment):
            times.append(1e3 * (time.perf_counter() - started))
    return times[1:]


async def measure_ready_s(runs: int) -> list[float]:
    """Return the times from no engine process to a loaded model."""
    times = []
    for _ in range(runs):
        client = EngineClient(EngineOptions())
        started = time.perf_counter()
        pid = (await asyncio.wait_for(client.connect(), READY_S)).pid
        times.append(time.perf_counter() - started)
        await client.close()
        os.kill(pid, signal.SIGTERM)
        await asyncio.to_thread(psutil.Process(pid).wait, 30)
    return times


@dataclass(frozen=True, slots=True)
class SecondWindow:
    """Costs of a second editor window.

    Attributes:
        extra_mb: Resident memory that its server adds.
        torch_imported: Whether its server has loaded torch.
        idle_cpu_percent: Use of one core by both servers and the engine together, while nothing is typed.
    """

    extra_mb: float
    torch_imported: bool
    idle_cpu_percent: float


async def measure_second_window(environment: Mapping[str, str], idle_s: float) -> SecondWindow:
    """Open two windows on one engine, then watch all processes for `idle_s` seconds."""

    def engine_bytes() -> int:
        return sum(process.memory_info().rss for process in engine_processes(environment))

    async def settled_bytes() -> int:
        """Wait until the engine has memory of its own for the weights, which it takes once it is ready."""
        known = 0
        while abs(engine_bytes() - known) > _STEADY_BYTES:
            known = engine_bytes()
            await asyncio.sleep(_STEADY_S)
        return engine_bytes()

    async with started_server(environment) as first:
        await first.wait_for_engine()
        before = await settled_bytes()
        async with started_server(environment) as second:
            await second.wait_for_engine()
            assert first.process is not None
            assert second.process is not None
            extra = second.process.memory_info().rss + await settled_bytes() - before
            torch = any("torch" in mapped.path for mapped in second.process.memory_maps())
            processes = [second.process, first.process, *engine_processes(environment)]
            return SecondWindow(extra / _MB, torch, await _idle_cpu_percent(processes, idle_s))


async def _idle_cpu_percent(processes: list[psutil.Process], seconds: float) -> float:
    await asyncio.sleep(_SETTLING_S)
    before = used_cpu_s(processes)
    await asyncio.sleep(seconds)
    return 100 * (used_cpu_s(processes) - before) / seconds


async def measure(options: argparse.Namespace) -> dict[str, float | bool]:
    """Take every measurement in private folders and return the figures by name."""
    with private_folders() as environment:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ.update(environment)  # `EngineClient` of this process finds its engine by these variables
        initialize_ms = await measure_initialize_ms(environment, options.runs)
        ready_s = await measure_ready_s(options.engine_runs)
        window = await measure_second_window(environment, options.idle_seconds)
    return {
        "initialize_ms": round(statistics.median(initialize_ms), 1),
        "initialize_worst_ms": round(max(initialize_ms), 1),
        "model_ready_s": round(statistics.median(ready_s), 2),
        "model_ready_worst_s": round(max(ready_s), 2),
        "second_window_extra_mb": round(window.extra_mb, 1),
        "torch_imported_by_server": window.torch_imported,
        "idle_cpu_percent": round(window.idle_cpu_percent, 3),
    }


def main() -> None:
    """Print a table, then one line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="number of server starts (default: %(default)s)")
    parser.add_argument("--engine-runs", type=int, default=3, help="number of engine starts (default: %(default)s)")
    parser.add_argument(
        "--idle-seconds", type=float, default=20, help="how long idle processes are watched (default: %(default)s)"
    )
    result = asyncio.run(measure(parser.parse_args()))
    for name, value in result.items():
        print(f"{name:28} {value}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
