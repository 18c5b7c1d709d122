"""Requests that an editor would send during recorded editing, each with the text that was typed next."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from benchmarks.data import read_trace
from completion.request import CompletionRequest, ContextFile

TYPED_CHARACTERS = 80
"""Maximum number of typed characters that are compared with a completion."""

PAUSE_S = 3.0
"""Pause after which the cache is refreshed to exact in the background, in seconds."""

_KEYS_BETWEEN_REQUESTS = 3
_NEAR = 200  # characters; an edit that is further away counts as a jump
_GROWN_CHARACTERS = 5_000  # the file of the trace is shorter than a prompt before that


class Kind(StrEnum):
    """Kind of change since the last request of the session."""

    OPEN = "open"
    TYPING = "typing on"
    ABOVE = "edit above"
    BELOW = "edit below"
    JUMP = "jump"
    SNIPPET = "snippet change"


@dataclass(frozen=True, slots=True)
class EditRequest:
    """One request of a session.

    Attributes:
        session: Name of the session. Requests of one session share a document.
        kind: Kind of change since the last request of the session.
        request: The request of the editor.
        typed: Text that was typed next, up to the end of the line.
        rested: Whether the editor was idle before, long enough for an exact refresh of the cache.
    """

    session: str
    kind: Kind
    request: CompletionRequest
    typed: str
    rested: bool = False


def trace_requests(path: Path) -> Iterator[EditRequest]:
    """Yield requests during the replay of a recorded editing trace, wherever typing goes on.

    Args:
        path: Gzipped JSON document of the editing-traces collection.
    """
    trace = read_trace(path)
    patches = [patch for transaction in trace["txns"] for patch in transaction["patches"]]
    seconds = [_seconds(transaction["time"]) for transaction in trace["txns"] for _ in transaction["patches"]]
    text, cursor, keys = trace["startContent"], 0, 0
    last: tuple[str, str] | None = None
    rested = False
    for index, (position, deleted, inserted) in enumerate(patches):
        text = text[:position] + inserted + text[position + deleted :]
        moved, cursor = position + deleted != cursor, position + len(inserted)
        keys = 0 if moved else keys + 1
        rested = rested or (index > 0 and seconds[index] - seconds[index - 1] >= PAUSE_S)
        typed = _typed_next(patches, index + 1, cursor)
        if len(text) < _GROWN_CHARACTERS or len(typed) < 3 or keys % _KEYS_BETWEEN_REQUESTS or len(inserted) > 8:
            continue
        now = text[:cursor], text[cursor:]
        yield EditRequest("trace", _kind(last, now), _ask("trace", *now, "svelte"), typed, rested)
        last, rested = now, False


def replay_requests(records: Sequence[Mapping[str, Any]]) -> Iterator[EditRequest]:
    """Yield requests while files are edited from one release to the next, hunk by hunk.

    Each hunk is typed in pieces. Between two pieces the hunks above and below it are applied, as an added import or a
    merge would do. Then the cursor jumps to the next hunk.
    """
    for record in records:
        hunks = _hunks(record["before"], record["after"])
        typed = [index for index, hunk in enumerate(hunks) if len(hunk.new.strip()) >= 12]
        typed = typed[1::2] or typed  # every second hunk, so that hunks on both sides are still missing
        done: set[int] = set()
        for visit, index in enumerate(typed[:3]):
            kind = Kind.JUMP if visit else Kind.OPEN
            for share, arrives in ((0.2, None), (0.35, None), (0.5, index - 1), (0.65, None), (0.8, index + 1)):
                if arrives is not None and 0 <= arrives < len(hunks) and arrives not in done:
                    kind = Kind.ABOVE if arrives < index else Kind.BELOW
                    done.add(arrives)
                prefix, suffix, rest = _render(record["before"], hunks, done, index, share)
                yield EditRequest(record["id"], kind, _ask(record["id"], prefix, suffix, record["language"]), rest)
                kind = Kind.TYPING
            done.add(index)


def snippet_requests(records: Sequence[Mapping[str, Any]]) -> Iterator[EditRequest]:
    """Yield requests with an unchanged document, while a snippet of another file changes, disappears or appears."""
    for record in records:
        pieces = [ContextFile(piece["path"], piece["text"][:1200]) for piece in record["context"][:3]]
        if len(pieces) < 3:
            continue
        first, second, third = pieces
        changed = replace(second, text=second.text[:300] + "\n# changed here\n" + second.text[360:])
        steps = ((first, second), (first, changed), (third, changed), (changed,))
        for step, context in enumerate(steps):
            asked = _ask(record["id"], record["prefix"], record["suffix"], record["language"])
            asked = replace(asked, context=context, path=record["path"], repository="workspace")
            yield EditRequest(record["id"], Kind.SNIPPET if step else Kind.OPEN, asked, record["reference"])


@dataclass(frozen=True, slots=True)
class _Hunk:
    """Replacement of the characters `start` to `end` of the old text by `new`."""

    start: int
    end: int
    new: str


def _hunks(before: str, after: str) -> list[_Hunk]:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    changes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [_Hunk(starts[i], starts[j], "".join(new[k:m])) for tag, i, j, k, m in changes if tag != "equal"]


def _render(before: str, hunks: Sequence[_Hunk], done: set[int], index: int, share: float) -> tuple[str, str, str]:
    """Return the prefix, the suffix and the missing part of the line, with `share` of hunk `index` typed."""
    own = hunks[index]
    at = int(len(own.new) * share)
    prefix = _apply(before[: own.start], hunks, done & set(range(index)), 0) + own.new[:at]
    later = {number for number in done if number > index}
    suffix = _apply(before[own.end :], hunks, later, own.end)
    return prefix, suffix if suffix.startswith("\n") else "\n" + suffix, own.new[at:].split("\n")[0]


def _apply(text: str, hunks: Sequence[_Hunk], chosen: set[int], offset: int) -> str:
    for number in sorted(chosen, reverse=True):
        hunk = hunks[number]
        text = text[: hunk.start - offset] + hunk.new + text[hunk.end - offset :]
    return text


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def _ask(document: str, prefix: str, suffix: str, language: str) -> CompletionRequest:
    return CompletionRequest(prefix, suffix, language, document=document)


def _typed_next(patches: Sequence[Sequence[Any]], index: int, cursor: int) -> str:
    """Return the text that the following patches insert at the cursor without a gap, up to the end of the line."""
    typed = ""
    for position, deleted, inserted in patches[index : index + TYPED_CHARACTERS]:
        if position != cursor + len(typed) or deleted or len(typed) >= TYPED_CHARACTERS:
            break
        typed += inserted
    return typed.split("\n")[0]


def _kind(last: tuple[str, str] | None, now: tuple[str, str]) -> Kind:
    """Classify the change between two pairs (text before the cursor, text after it)."""
    if last is None:
        return Kind.OPEN
    (before, after), (prefix, suffix) = last, now
    if suffix == after and (prefix.startswith(before) or before.startswith(prefix)):
        return Kind.TYPING
    if before + after == prefix + suffix or abs(len(prefix) - len(before)) > _NEAR:
        return Kind.JUMP
    return Kind.ABOVE if suffix == after else Kind.BELOW
