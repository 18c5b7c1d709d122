"""Several servers on one host, several starters of one host, several writers of one telemetry store."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from completion.request import Statistics
from lsp_server.telemetry.event_queue import SuggestionRecord, Telemetry
from lsp_server.telemetry.store import open_store
from tests.torture.editing import Typist
from tests.torture.tally import Round
from tests.torture.world import FAREWELL_S, World, kill, wait_gone

_STARTERS = 4
_ROWS = 3000
_TYPING_S = 4.0


def _two_windows(tally: Round, chance: random.Random) -> None:
    """Two servers at once with the same names and different texts; one is killed, and the other never notices."""
    with World(tally) as world:
        typists = []
        for _ in range(2):
            encoding = chance.choice(("utf-8", "utf-16", "utf-32"))
            typist = Typist(world.ready(encoding=encoding), tally, chance, encoding)
            typist.open()
            typist.open_notebook()
            typists.append(typist)
        _type_for(_TYPING_S, typists, chance)
        if len(world.hosts()) != 1:
            tally.found(f"two windows have {len(world.hosts())} hosts")
        kill(typists[1].client.process.pid, signal.SIGKILL)
        tally.counts["kills"] += 1
        _type_for(_TYPING_S, typists[:1], chance)
        world.leave(typists[0].client)


def _type_for(seconds: float, typists: list[Typist], chance: random.Random) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for typist in typists:
            chance.choice(
                (typist.edit, typist.edit, typist.ask, typist.ask_and_check, typist.cancel, typist.use_offer)
            )()
    for typist in typists:
        typist.settle()


def _many_starters(tally: Round, chance: random.Random) -> None:
    """So many hosts at the same moment: one stays. It is killed, and again one takes its place."""
    with World(tally) as world:
        for _ in range(2):
            command = [sys.executable, "-P", "-m", "completion.host", "--model", "echo", "--idle-seconds", "1"]
            hosts = [subprocess.Popen(command, env=_with_path(world)) for _ in range(_STARTERS)]
            client = world.ready()
            ended = [host for host in hosts if host.poll() is not None or _ends(host)]
            if len(world.hosts()) != 1:
                tally.found(f"{_STARTERS} starters leave {len(world.hosts())} hosts")
            for host in ended:
                if host.wait() not in (0, 75):
                    tally.found(f"a host that came second ended with status {host.returncode}")
            for host in world.hosts():
                kill(host.pid, chance.choice((signal.SIGKILL, signal.SIGTERM)))
                tally.counts["kills"] += 1
                wait_gone(host, FAREWELL_S)
            world.leave(client)
            for host in hosts:
                host.wait()


def _ends(host: subprocess.Popen[bytes]) -> bool:
    with suppress(subprocess.TimeoutExpired):
        host.wait(2)
    return host.poll() is not None


def _with_path(world: World) -> dict[str, str]:
    return {**os.environ, **world.environment}


def _write(path: Path, name: str, committed: object) -> None:
    telemetry = Telemetry(path, on_committed=lambda rows: setattr(committed, "value", rows))
    for number in range(_ROWS):
        telemetry.save(SuggestionRecord(f"{name}-{number}", float(number), statistics=Statistics()))
        if number % 100 == 0:
            telemetry.flush()
    telemetry.close()


def _many_writers(tally: Round, chance: random.Random) -> None:
    """Three writers of one store, one of them killed: what was committed is there, and the store is whole."""
    with World(tally) as world:
        path = world.folder / "telemetry.sqlite3"
        context = multiprocessing.get_context("spawn")
        committed = [context.Value("i", 0) for _ in range(3)]
        writers = [
            context.Process(target=_write, args=(path, f"w{index}", count), daemon=True)
            for index, count in enumerate(committed)
        ]
        for writer in writers:
            writer.start()
        while not committed[0].value and writers[0].is_alive():
            time.sleep(chance.random() / 50)
        writers[0].kill()
        tally.counts["kills"] += 1
        for writer in writers:
            writer.join()
        store = open_store(path)
        (verdict,) = store.execute("PRAGMA integrity_check").fetchone()
        for index, count in enumerate(committed):
            (rows,) = store.execute("SELECT count(*) FROM suggestions WHERE id LIKE ?", (f"w{index}-%",)).fetchone()
            if rows < (count.value if index == 0 else _ROWS):
                tally.found(f"a telemetry writer lost {count.value - rows} committed rows")
        store.close()
        if verdict != "ok":
            tally.found(f"the telemetry store: {verdict}")


def _locked_store(tally: Round, chance: random.Random) -> None:
    """Somebody holds the store: suggestions and the farewell do not wait for it."""
    with World(tally) as world:
        first = world.ready()
        world.leave(first)
        lock = sqlite3.connect(world.folder / "state" / "telemetry.sqlite3", isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        started = time.monotonic()
        typist = Typist(world.ready(), tally, chance, "utf-16")
        typist.open()
        typist.open_notebook()
        _type_for(1.0, [typist], chance)
        world.leave(typist.client)
        lock.execute("ROLLBACK")
        lock.close()
        if time.monotonic() - started > FAREWELL_S:
            tally.found(f"a locked telemetry store delays a session by {time.monotonic() - started:.0f} s")


def run(tally: Round) -> None:
    """One round of one of them."""
    chance = random.Random(tally.seed)
    chance.choice((_two_windows, _many_starters, _many_writers, _locked_store))(tally, chance)
