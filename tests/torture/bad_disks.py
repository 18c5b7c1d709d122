"""Disks that are full, small or read-only, folders that are files, and a wall clock that jumps backwards."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.torture import instruments
from tests.torture.echo_engine import echo
from tests.torture.tally import Round
from tests.torture.world import ANSWER_S, World, introduce

_ASKS = 30
_STATE_FILES = ("telemetry.sqlite3", "off.json", "consent.json", "experiment.json", "drafting", "telemetry.sqlite3-wal")


@contextmanager
def _healthy(_world: World, _chance: random.Random) -> Iterator[dict[str, str]]:
    yield {}


@contextmanager
def _short_files(_world: World, chance: random.Random) -> Iterator[dict[str, str]]:
    """Every file may have so many bytes: what a full disk says, too."""
    yield {instruments.FILE_BYTES: str(chance.choice((0, 4096, 60_000)))}


@contextmanager
def _jumping_clock(_world: World, chance: random.Random) -> Iterator[dict[str, str]]:
    yield {instruments.CLOCK: str(chance.randrange(1000))}


@contextmanager
def _state_is_a_file(world: World, _chance: random.Random) -> Iterator[dict[str, str]]:
    (world.folder / "state").write_text("")
    yield {}


@contextmanager
def _read_only_state(world: World, _chance: random.Random) -> Iterator[dict[str, str]]:
    """A folder that cannot be written; root can always write, so it gets a mount that nobody can."""
    with _mounted(world.folder / "state", "ro") as is_mounted:
        if not is_mounted:
            (world.folder / "state").chmod(0o500)
        yield {}


@contextmanager
def _full_state(world: World, chance: random.Random) -> Iterator[dict[str, str]]:
    with _mounted(world.folder / "state", f"size={chance.choice((4, 64, 256))}k"):
        yield {}


@contextmanager
def _wrong_state(world: World, chance: random.Random) -> Iterator[dict[str, str]]:
    """Anything but what was written lies in the place of files of the state folder."""
    state = world.folder / "state"
    state.mkdir(mode=0o700)
    for name in chance.sample(_STATE_FILES, 4):
        kind, path = chance.choice(("folder", "pipe", "loop", "bytes", "nested", "digits", "cut")), state / name
        world.tally.counts[f"state: {kind}"] += 1
        if kind == "folder":
            (path / "inner").mkdir(parents=True)
        elif kind == "pipe":
            os.mkfifo(path)
        elif kind == "loop":
            path.symlink_to(path)
        else:
            contents = {"bytes": chance.randbytes(5000), "nested": b"[" * 90_000, "digits": b"9" * 400, "cut": b"{"}
            path.write_bytes(contents[kind])
    yield {}


@contextmanager
def _mounted(folder: Path, options: str) -> Iterator[bool]:
    folder.mkdir(mode=0o700, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"mode=700,{options}", "draftline-torture", str(folder)]
    mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


_DISKS = (_healthy, _short_files, _jumping_clock, _state_is_a_file, _read_only_state, _full_state, _wrong_state)


def run(tally: Round, asks: int = _ASKS) -> None:
    """One round: a session on a bad disk; it suggests, or its status says why it cannot."""
    chance = random.Random(tally.seed)
    world = World(tally, nonsense=True)
    make_bad = chance.choice(_DISKS)
    with make_bad(world, chance) as environment:
        world.environment |= environment
        with world:
            _work(world, make_bad.__name__, asks)


def _work(world: World, disk: str, asks: int) -> None:
    client = world.server()
    introduce(client, telemetry=True)
    try:
        client.wait_for_status("ready", 2 * ANSWER_S)
        is_ready = True
    except TimeoutError:
        world.tally.found(f"{disk}: neither ready nor an error within {2 * ANSWER_S:.0f} s")
        return
    except RuntimeError as error:
        is_ready = False
        if not str(error).strip():
            world.tally.found(f"{disk}: the status names no reason")
    for number in range(asks):
        text = f"value_{number} = "
        document = {"uri": f"file:///nowhere/{number}.py", "languageId": "python", "version": 1, "text": text}
        client.notify("textDocument/didOpen", {"textDocument": document})
        place = {"textDocument": {"uri": document["uri"]}, "position": {"line": 0, "character": len(text)}}
        world.tally.counts["requests"] += 1
        id_ = client.ask("textDocument/inlineCompletion", {**place, "context": {"triggerKind": 1}})
        items = [item["insertText"] for item in client.reply(id_, ANSWER_S)["result"]["items"]]
        if is_ready and items != [echo(text, "")]:
            world.tally.found(f"{disk}: ready, and a request gets {len(items)} items")
    world.leave(client)
