"""Runs rounds of all parts until the time is over, each part by its share, and says what it found while it goes."""

from __future__ import annotations

import compileall
import random
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from completion.host.engine_loader import compile_once
from completion.host.server import HostSettings
from completion.progress import silent
from tests.tiny_models import write_tiny_model
from tests.torture import (
    bad_disks,
    cancels,
    editing,
    hostile_models,
    hostile_workspaces,
    kills,
    malformed_http,
    malformed_rpc,
    neighbours,
)
from tests.torture.tally import Round, Tally
from tests.torture.world import ROOT


@dataclass(frozen=True, slots=True)
class Part:
    """A kind of attack.

    Attributes:
        share: Its part of the time, relative to the others'.
        run: Runs one round; all that is random in it comes from the round's seed.
    """

    name: str
    share: float
    run: Callable[[Round], None]


PARTS = (
    Part("editing", 9, editing.run),
    Part("rpc", 3, malformed_rpc.run),
    Part("http", 2, malformed_http.run),
    Part("cancels", 2, cancels.run),
    Part("kills", 12, kills.run),
    Part("workspaces", 4, hostile_workspaces.run),
    Part("disks", 1, bad_disks.run),
    Part("neighbours", 2, neighbours.run),
    Part("models", 1, hostile_models.run),
)


def run_campaign(parts: Sequence[Part], seconds: float, seed: int, jobs: int, *, is_busy: bool = False) -> Tally:
    """Attack for so long; gives what was counted and found."""
    print(f"torture: seed {seed}, {seconds / 60:g} minutes, parts {', '.join(part.name for part in parts)}", flush=True)
    _compile()
    tally, schedule = Tally(), _Schedule(parts, seed)
    end = time.monotonic() + seconds

    def work() -> None:
        while time.monotonic() < end:
            part, round_seed = schedule.next()
            started = time.monotonic()
            done = _run(Round(part.name, round_seed, is_busy), part)
            schedule.took(part, time.monotonic() - started)
            tally.add(done)
            _tell(done, time.monotonic() - started)

    with ThreadPoolExecutor(jobs) as pool:
        for worker in [pool.submit(work) for _ in range(jobs)]:
            worker.result()
    for part in parts:
        print(f"{part.name:12} {tally.rounds[part.name]:5} rounds", flush=True)
    return tally


def replay(part: Part, seed: int, *, is_busy: bool = False) -> Tally:
    """Run one round again."""
    _compile()
    tally = Tally()
    done = _run(Round(part.name, seed, is_busy), part)
    tally.add(done)
    _tell(done, 0)
    return tally


def _compile() -> None:
    """Make the bytecode and the kernels that an installation has. The attacked processes write no bytecode, and would
    compile it for 0.2 s at each start, and the kernels for a minute at the first one.
    """
    for package in ("completion", "drafting", "lsp_server"):
        compileall.compile_dir(ROOT / package, quiet=1)
    with tempfile.TemporaryDirectory() as folder:
        trial = compile_once(HostSettings(model=str(write_tiny_model(Path(folder, "tiny")))), silent)
        if trial is not None:
            trial()


class _Schedule:
    """Gives the part that is furthest behind its share, and the seed of its next round."""

    def __init__(self, parts: Sequence[Part], seed: int) -> None:
        self._parts = parts
        self._seed = seed
        self._spent: Counter[str] = Counter()
        self._started: Counter[str] = Counter()
        self._lock = threading.Lock()

    def next(self) -> tuple[Part, int]:
        with self._lock:
            part = min(self._parts, key=lambda one: (self._spent[one.name] / one.share, self._started[one.name]))
            self._started[part.name] += 1
            self._spent[part.name] += 5  # until it is known: two workers shall not take the same part
            return part, random.Random(f"{self._seed} {part.name} {self._started[part.name]}").randrange(1 << 32)

    def took(self, part: Part, seconds: float) -> None:
        with self._lock:
            self._spent[part.name] += seconds - 5


def _run(done: Round, part: Part) -> Round:
    try:
        part.run(done)
    except Exception as error:  # noqa: BLE001 - whatever ends a round is a finding, and the next round goes on
        where = traceback.extract_tb(error.__traceback__)[-1]
        done.found(f"the round ended with {type(error).__name__}: {error} ({where.name}:{where.lineno})"[:300])
    return done


def _tell(done: Round, seconds: float) -> None:
    counts = ", ".join(f"{count} {name}" for name, count in sorted(done.counts.items()))
    print(f"{done.part} round {done.seed} ({seconds:.0f} s): {counts}; deaf {done.deaf_ms:.0f} ms", flush=True)
    for finding in done.findings:
        print(f"  FINDING {finding.what}\n    replay: {finding.replay}", flush=True)
