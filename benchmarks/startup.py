"""`python -m benchmarks.startup`: how fast draftline starts, and what a second editor window costs.

All processes run in private folders, so that the engine of the user is neither used nor disturbed. The first start is
that of an installed package in an empty home: no converted or packed model, no tokenizer's tables, no machine code. The
other starts take the model from the user's cache, and are warm: one that may convert it comes first and does not count.
The modules' bytecode is kept, as an installation has it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.engine_processes import end_engines, engine_processes, private_folders, used_cpu_s
from benchmarks.language_client import READY_S, ServerProcess
from completion.model.store.converted_models import tree_bytes
from completion.request import CompletionRequest
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
    """Return the times from no engine process to a loaded model.

    The first run is not measured, because it may convert the model.
    """
    times = []
    for _ in range(runs + 1):
        client = EngineClient(EngineOptions())
        started = time.perf_counter()
        pid = (await asyncio.wait_for(client.connect(), READY_S)).pid
        times.append(time.perf_counter() - started)
        await client.close()
        os.kill(pid, signal.SIGTERM)
        await asyncio.to_thread(psutil.Process(pid).wait, 30)
    return times[1:]


@dataclass(frozen=True, slots=True)
class FirstStart:
    """Costs of a start from nothing but the installed packages.

    Attributes:
        wall_s: Time until the first completion is complete.
        cpu_s: Processor time of the engine and its children until then.
        cache_bytes: Size of the cache folder's files once the engine has ended.
    """

    wall_s: float
    cpu_s: float
    cache_bytes: int


async def measure_first_start(model: str, *, compiling: bool) -> FirstStart:
    """Complete a line with an engine that finds an empty home.

    Args:
        model: The engine's model.
        compiling: Whether numba's own cache, which it keeps beside the code, is elsewhere and empty, too: so it is when
            an installation starts for the first time. Later users of an installation find it filled.
    """
    with private_folders() as environment, tempfile.TemporaryDirectory(prefix="dl-first-") as home:
        cache = Path(home, "cache")
        own = {"NUMBA_CACHE_DIR": str(Path(home, "numba"))} if compiling else {}
        os.environ.update(environment, DRAFTLINE_CACHE_DIR=str(cache), **own)
        try:
            client = EngineClient(EngineOptions(model=model))
            started = time.perf_counter()
            request = CompletionRequest("def add(a, b):\n    return ", language="python")
            texts = [event.suggestions[0].text async for event in client.complete(request) if event.suggestions]
            wall_s, cpu_s = time.perf_counter() - started, used_cpu_s(engine_processes(environment))
            await client.close()
        finally:
            for name in ("DRAFTLINE_CACHE_DIR", *own):
                del os.environ[name]
        assert texts, "The first completion is empty."
        await asyncio.to_thread(end_engines, environment)
        return FirstStart(wall_s, cpu_s, tree_bytes(cache))


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
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    first = [await measure_first_start(options.model, compiling=False) for _ in range(options.first_starts)]
    compiling = [await measure_first_start(options.model, compiling=True) for _ in range(options.compiling_starts)]
    with private_folders() as environment:
        os.environ.update(environment)  # `EngineClient` of this process finds its engine by these variables
        initialize_ms = await measure_initialize_ms(environment, options.runs)
        ready_s = await measure_ready_s(options.engine_runs)
        window = await measure_second_window(environment, options.idle_seconds)
    return {
        **_figures("first_start", first),
        **_figures("compiling_start", compiling),
        **({"cache_mb": round(first[-1].cache_bytes / _MB)} if first else {}),
        "initialize_ms": round(statistics.median(initialize_ms), 1),
        "initialize_worst_ms": round(max(initialize_ms), 1),
        "model_ready_s": round(statistics.median(ready_s), 2),
        "model_ready_worst_s": round(max(ready_s), 2),
        "second_window_extra_mb": round(window.extra_mb, 1),
        "torch_imported_by_server": window.torch_imported,
        "idle_cpu_percent": round(window.idle_cpu_percent, 3),
    }


def _figures(name: str, starts: list[FirstStart]) -> dict[str, float]:
    if not starts:
        return {}
    return {
        f"{name}_s": round(statistics.median(each.wall_s for each in starts), 1),
        f"{name}_cpu_s": round(statistics.median(each.cpu_s for each in starts), 1),
    }


def main() -> None:
    """Print a table, then one line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="number of server starts (default: %(default)s)")
    parser.add_argument(
        "--first-starts", type=int, default=1, help="number of starts from nothing (default: %(default)s)"
    )
    parser.add_argument(
        "--compiling-starts",
        type=int,
        default=0,
        help="number of starts from nothing that compile all kernels, a minute each or more (default: %(default)s)",
    )
    parser.add_argument("--model", default="default", help="model of the first start (default: %(default)s)")
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
