"""The week: twelve workspaces, windows that come and go, an engine that idles out after the second day and returns.

Every fourth hour, a new window types the same keys in the same files as in the first hour, alone. These hours are
compared with each other, so that a difference is one of age and not of work.
"""

from __future__ import annotations

import asyncio
import random
import sysconfig
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.engine_processes import engine_processes
from benchmarks.soak.window import Window

DAYS = 5
HOURS = 40
_WORKSPACES = 12
_DOCUMENTS = 200
_LONGEST_DOCUMENT = 40_000
_DAYS_BEFORE_REST = 2
_BLOCK = 4  # hours: one that is repeated all week, then three of another window, with a visitor in the second of them
_IDLE_MINUTES = 0.05
_SAMPLES_AN_HOUR = 10
_GONE_S = 60.0


@dataclass(frozen=True, slots=True)
class Sample:
    """Resident memory at one moment, in bytes.

    Attributes:
        keys: Keys that were typed until then.
        hour: The hour, from 0.
    """

    keys: int
    host: int
    servers: int
    hour: int


def is_repeated(hour: int) -> bool:
    """Return whether the keys of an hour are those of the first one."""
    return hour % _BLOCK == 0


@dataclass(slots=True)
class Week:
    """What was measured.

    Attributes:
        waits_s: For each hour, how long answers took.
        left_behind: What was still there when all windows were closed and the engine's time was over.
    """

    samples: list[Sample] = field(default_factory=list)
    waits_s: list[list[float]] = field(default_factory=list)
    left_behind: list[str] = field(default_factory=list)


def make_workspaces(folder: Path) -> list[Path]:
    """Copy modules of Python's own library into folders."""
    sources = sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py"))
    fitting = [path for path in sources if 2_000 < path.stat().st_size < _LONGEST_DOCUMENT and "test" not in path.parts]
    workspaces = [folder / f"workspace{number}" for number in range(_WORKSPACES)]
    for workspace in workspaces:
        workspace.mkdir(parents=True)
    for number, path in enumerate(random.Random(0).sample(fitting, min(_DOCUMENTS, len(fitting)))):
        text = path.read_text(encoding="utf-8", errors="replace")
        (workspaces[number % _WORKSPACES] / f"module{number}.py").write_text(text, encoding="utf-8")
    return workspaces


class Worker:
    """Lives the week."""

    def __init__(
        self,
        environment: Mapping[str, str],
        workspaces: list[Path],
        settings: Mapping[str, object],
        seed: int,
        tell: Callable[[str], None],
    ) -> None:
        self._environment = environment
        self._workspaces = workspaces
        self._settings = {**settings, "idleMinutes": _IDLE_MINUTES}
        self._seed = seed
        self._chance = random.Random(seed)
        self._tell = tell
        self._keys = 0

    async def live(self, keys: int) -> Week:
        """Type so many keys in forty hours."""
        week, window = Week(), None
        for hour in range(HOURS):
            if hour % _BLOCK < 2:
                following = await self._window(random.Random(self._seed) if is_repeated(hour) else self._chance)
                await self._close(window, week)  # the next one is there already, so the engine stays
                window = following
            visitor = await self._window(self._chance) if hour % _BLOCK == 2 else None
            week.waits_s.append(await self._hour(week, [one for one in (window, visitor) if one], keys // HOURS))
            await self._close(visitor, week)
            if hour in {HOURS * _DAYS_BEFORE_REST // DAYS - 1, HOURS - 1}:
                await self._close(window, week)
                await self._rest(week)
                window = None
            self._tell(f"hour {hour + 1} of {HOURS}: {self._keys:,} keys, {week.samples[-1].host / 1e6:.0f} MB engine")
        return week

    async def _hour(self, week: Week, windows: list[Window], keys: int) -> list[float]:
        waits: list[float] = []
        before, sampled = self._keys, self._keys
        while self._keys < before + keys:
            window = self._chance.choice(windows)
            typed = window.keys
            waits += await window.type_line()
            self._keys += window.keys - typed
            if self._keys - sampled >= keys / _SAMPLES_AN_HOUR:
                sampled = self._keys
                week.samples.append(self._sample(windows, len(week.waits_s)))
        week.samples.append(self._sample(windows, len(week.waits_s)))
        return waits

    def _sample(self, windows: list[Window], hour: int) -> Sample:
        host = sum(process.memory_info().rss for process in engine_processes(self._environment))
        return Sample(self._keys, host, sum(window.resident_bytes for window in windows), hour)

    async def _window(self, chance: random.Random) -> Window:
        folders = chance.sample(self._workspaces, chance.randint(1, 3))
        return await Window.open(self._environment, folders, self._settings, chance)

    async def _close(self, window: Window | None, week: Week) -> None:
        if window is not None and not await window.close():
            week.left_behind.append("a server")

    async def _rest(self, week: Week) -> None:
        """Nobody types: the engine ends by itself, with its socket and its files."""
        deadline = time.monotonic() + _GONE_S
        while (hosts := engine_processes(self._environment)) and time.monotonic() < deadline:
            await asyncio.to_thread(psutil.wait_procs, hosts, 1)
        week.left_behind += [f"process {host.pid}" for host in hosts]
        week.left_behind += self._files_left()

    def _files_left(self) -> list[str]:
        """Sockets, and files that only an unfinished write leaves."""
        state = Path(self._environment["DRAFTLINE_STATE_DIR"])
        return [
            *(path.name for path in Path(self._environment["DRAFTLINE_RUNTIME_DIR"]).glob("*.sock")),
            *(path.name for path in state.rglob("*") if path.name.endswith(("-wal", "-shm", ".tmp"))),
        ]
