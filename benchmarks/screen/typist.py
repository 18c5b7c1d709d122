"""The typist of both editors: what is typed where, key by key, and the pauses between the keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from benchmarks.data import read_records
from benchmarks.typing.person import Habits, strokes
from benchmarks.typing.scripts import Script, choose, release_scripts

CHARACTERS = 400
"""Maximum number of typed characters of a session."""
FEWEST_CHARACTERS = 60
LAST_S = 1.5
"""Time in which the screen is read after the last key, in seconds."""


def sessions_of(count: int, seed: int, data_dir: str | None) -> list[Script]:
    """Return sessions that begin with an insertion that is long enough."""
    found = release_scripts(read_records("open_release_replay.jsonl.gz", data_dir), CHARACTERS)
    inserting = [
        one for one in found if not one.passages[0].deleted and len(one.passages[0].typed.strip()) >= FEWEST_CHARACTERS
    ]
    return choose(inserting, [], count, seed)


def place_of(script: Script) -> tuple[int, int]:
    """Return the line and the column at which a session begins, both from 0."""
    before = script.text[: script.passages[0].offset]
    return before.count("\n"), len(before) - before.rfind("\n") - 1


def timed_keys(script: Script, seed: int) -> Iterator[tuple[float, str]]:
    """Yield each key of a session's first insertion after the pause before it, in seconds."""
    passage = script.passages[0]
    pauses = iter(strokes(passage, Habits(), Random(f"{seed}:{script.id}")))
    for key in keys_of(passage.typed[:CHARACTERS]):
        yield max(next(pauses).pause_s for _ in key), key


def keys_of(typed: str) -> Iterator[str]:
    """Yield a character, or a line end with the blanks after it, for each key."""
    for match in re.finditer(r"\n[ \t]*|^[ \t]+|.", typed):
        yield match.group()
