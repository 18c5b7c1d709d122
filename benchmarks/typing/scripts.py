"""Scripts of benchmarks.typing: real changes as positions in a file, with the text to delete and to type there."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.data import read_trace

FEWEST_CHARACTERS = 60
"""Minimum number of typed characters of a session."""

_LIKE_BEFORE = 0.5  # similarity from which lines are edited word by word; others are typed anew
_NEAR_CHARACTERS = 4  # changed words with less text between them are one change
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_BLANKS = re.compile(r"[ \t]*")
_GROWN_CHARACTERS = 5_000  # minimum length of the file of the trace


@dataclass(frozen=True, slots=True)
class Passage:
    """One change: `deleted` characters are removed at once, then `typed` is typed.

    Attributes:
        offset: Position of the change in the text after all earlier passages.
    """

    offset: int
    deleted: int
    typed: str


@dataclass(frozen=True, slots=True)
class Script:
    """One session: a file and its changes.

    Attributes:
        length: Number of written characters, typed or accepted, after which the session ends.
    """

    id: str
    language: str
    path: str
    text: str
    passages: tuple[Passage, ...]
    length: int


WARM_UP = Script("warm-up", "python", "warm_up.py", "import sys\n\n\n", (Passage(11, 0, "def main():\n"),), 12)
"""Session of no record, before the first one."""


def key_unit(passage: Passage, text: str, index: int) -> str:
    """Return the text of the next key: a character, or a line end with the indentation that the editor adds.

    Args:
        passage: The passage that is typed.
        text: The document before the passage.
        index: Number of characters of the passage that are written.
    """
    rest = passage.typed[index:]
    before = passage.typed[index - 1] if index else text[passage.offset - 1 : passage.offset] or "\n"
    if rest[0] == "\n":
        return "\n" + _BLANKS.match(rest, 1).group()  # type: ignore[union-attr]
    if before == "\n" and rest[0] in " \t":
        return _BLANKS.match(rest).group()  # type: ignore[union-attr]
    return rest[0]


def keys_of(text: str) -> int:
    """Return the number of keys of a text if the editor indents."""
    return len(re.sub(r"\n[ \t]*", "\n", text))


def release_scripts(records: Sequence[Mapping[str, Any]], characters: int) -> list[Script]:
    r"""Return a session for each release replay with enough typed text. Line ends are \n: each is one key.

    Args:
        records: Records with whole files as `before` and `after`.
        characters: Maximum number of typed characters of a session.
    """
    return [
        script
        for record in records
        for before, after in [(_with_plain_ends(record["before"]), _with_plain_ends(record["after"]))]
        if (script := _script(record["id"], record["language"], record["path"], before,
                              list(passages(before, after)), characters)) is not None
    ]  # fmt: skip


def _with_plain_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def trace_scripts(path: Path, characters: int, count: int) -> list[Script]:
    """Return sessions of a recorded editing trace, with its order of positions and its deletions.

    Args:
        path: Gzipped JSON document of the editing-traces collection.
        characters: Maximum number of typed characters of a session.
        count: Number of sessions, spread over the trace.
    """
    trace = read_trace(path)
    patches = [patch for transaction in trace["txns"] for patch in transaction["patches"]]
    found: list[Script] = []
    text, wanted = trace["startContent"], [len(patches) * (2 * turn + 1) // (2 * count) for turn in range(count)]
    for index, (position, deleted, inserted) in enumerate(patches):
        if wanted and index >= wanted[0] and len(text) >= _GROWN_CHARACTERS and len(inserted) == 1:
            recorded = _joined(patches[index : index + 3 * characters])
            script = _script(f"{path.stem}:{index}", "svelte", "Trace.svelte", text, recorded, characters)
            if script is not None:
                found.append(script)
                wanted.pop(0)
        text = text[:position] + inserted + text[position + deleted :]
    return found


def choose(releases: Sequence[Script], traces: Sequence[Script], count: int, seed: int) -> list[Script]:
    """Return a sample in random order. Every eighth session is one of the trace.

    Raises:
        SystemExit: There is no session.
    """
    drawn = Random(seed).sample(list(releases), len(releases))
    left, others = iter(drawn), iter(traces)
    mixed = (next(others, None) if turn % 8 == 3 else None for turn in range(count))
    sessions = [other or next(left, None) for other in mixed]
    found = [session for session in sessions if session is not None]
    if not found:
        raise SystemExit(f"There is nothing to type. Give a session, and {FEWEST_CHARACTERS} --characters or more.")
    return found


def passages(before: str, after: str) -> Iterator[Passage]:
    """Yield the changes that turn one text into another, from top to bottom."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    written = 0
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        gone, typed = "".join(old[i:j]), "".join(new[k:m])
        if tag == "insert":
            yield _opened_line(written, typed)
        elif tag != "equal":
            yield from _replacement(written, gone, typed)
        written += len(typed)


def _opened_line(offset: int, typed: str) -> Passage:
    """Return a passage that opens new lines at the end of the line above them."""
    if offset and typed.endswith("\n"):
        return Passage(offset - 1, 0, "\n" + typed[:-1])
    return Passage(offset, 0, typed)


def _replacement(offset: int, gone: str, typed: str) -> Iterator[Passage]:
    old, new = _WORDS.findall(gone), _WORDS.findall(typed)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    if not typed or matcher.ratio() < _LIKE_BEFORE:
        kept = 1 if gone.endswith("\n") and typed.endswith("\n") else 0
        yield Passage(offset, len(gone) - kept, typed[: len(typed) - kept])
        return
    pending: Passage | None = None
    for tag, i, j, k, m in matcher.get_opcodes():
        lost, came = "".join(old[i:j]), "".join(new[k:m])
        if tag == "equal" and pending is not None and len(came) >= _NEAR_CHARACTERS:
            yield pending
            pending = None
        elif pending is not None:
            pending = Passage(pending.offset, pending.deleted + len(lost), pending.typed + came)
        elif tag != "equal":
            pending = Passage(offset, len(lost), came)
        offset += len(came)
    if pending is not None:
        if pending.typed.endswith("\n") and gone.endswith("\n"):
            pending = Passage(pending.offset, pending.deleted - 1, pending.typed[:-1])
        yield pending


def _joined(patches: Sequence[Sequence[Any]]) -> list[Passage]:
    """Return single keys as passages. Keys without a gap belong to one passage."""
    found: list[Passage] = []
    for position, deleted, inserted in patches:
        last = found[-1] if found else None
        if last is not None and not deleted and position == last.offset + len(last.typed):
            found[-1] = Passage(last.offset, last.deleted, last.typed + inserted)
        else:
            found.append(Passage(position, deleted, inserted))
    return found


def _script(id_: str, language: str, path: str, text: str, found: Sequence[Passage], characters: int) -> Script | None:
    length = min(characters, sum(len(passage.typed) for passage in found))
    return Script(id_, language, path, text, tuple(found), length) if length >= FEWEST_CHARACTERS else None
