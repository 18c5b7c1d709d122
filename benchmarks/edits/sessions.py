"""Turns recorded editing into the requests that an editor would send, each with what was typed next."""

from __future__ import annotations

import difflib
import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from completion.request import CompletionRequest, ContextFile

TYPED_CHARACTERS = 80
"""So much of what was typed next is compared with a completion."""

REST_S = 3.0
"""So long without a key, and the cache is refreshed to exact in the background."""

_KEYS_BETWEEN_REQUESTS = 3
_NEAR = 200  # an edit further away than this is elsewhere in the file
_GROWN_CHARACTERS = 5_000  # before that the trace's file is shorter than a prompt


class Kind(StrEnum):
    """What happened since the session's last request."""

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
        session: Requests of one session share a document.
        kind: What happened since the last request of the session.
        request: What the editor asks.
        typed: What was really typed next, up to a line's end.
        rested: The editor was idle before, long enough for an exact refresh of the cache.
    """

    session: str
    kind: Kind
    request: CompletionRequest
    typed: str
    rested: bool = False


def trace_requests(path: Path, limit: int) -> Iterator[EditRequest]:
    """Requests while a recorded editing trace is replayed, at the moments where typing goes on.

    Args:
        path: A gzipped JSON document of the editing-traces collection.
        limit: Most requests.
    """
    with gzip.open(path, "rt", encoding="utf-8") as file:
        trace = json.load(file)
    patches = [patch for transaction in trace["txns"] for patch in transaction["patches"]]
    seconds = [_seconds(transaction["time"]) for transaction in trace["txns"] for _ in transaction["patches"]]
    text, cursor, count, keys = trace["startContent"], 0, 0, 0
    last: tuple[str, str] | None = None
    rested = False
    for index, (position, deleted, inserted) in enumerate(patches):
        text = text[:position] + inserted + text[position + deleted :]
        moved, cursor = position + deleted != cursor, position + len(inserted)
        keys = 0 if moved else keys + 1
        rested = rested or (index > 0 and seconds[index] - seconds[index - 1] >= REST_S)
        typed = _typed_next(patches, index + 1, cursor)
        if len(text) < _GROWN_CHARACTERS or len(typed) < 3 or keys % _KEYS_BETWEEN_REQUESTS or len(inserted) > 8:
            continue
        now = text[:cursor], text[cursor:]
        yield EditRequest("trace", _kind(last, now), _ask("trace", *now, "svelte"), typed, rested)
        last, count, rested = now, count + 1, False
        if count == limit:
            return


def replay_requests(records: Sequence[Mapping[str, Any]]) -> Iterator[EditRequest]:
    """Requests while files are edited from one release to the next, hunk by hunk.

    Every hunk is typed in pieces; between two pieces the hunks above and below it fall into place, as an added import
    or a colleague's change does; then the cursor jumps to the next hunk.
    """
    for record in records:
        hunks = _hunks(record["before"], record["after"])
        typed = [index for index, hunk in enumerate(hunks) if len(hunk.new.strip()) >= 12]
        typed = typed[1::2] or typed  # every other one, so that hunks on both sides are still to come
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
    """Requests whose document stays while a piece of another file in front of it changes, leaves or comes."""
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
    """Characters `start` to `end` of the old text become `new`."""

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
    """Prefix, suffix and the rest of the line to be typed, `share` of hunk `index` being typed."""
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
    """What the following patches insert at the cursor, one behind the other, up to a line's end."""
    typed = ""
    for position, deleted, inserted in patches[index : index + TYPED_CHARACTERS]:
        if position != cursor + len(typed) or deleted or len(typed) >= TYPED_CHARACTERS:
            break
        typed += inserted
    return typed.split("\n")[0]


def _kind(last: tuple[str, str] | None, now: tuple[str, str]) -> Kind:
    """What changed between two states of (before the cursor, after the cursor)."""
    if last is None:
        return Kind.OPEN
    (before, after), (prefix, suffix) = last, now
    if suffix == after and (prefix.startswith(before) or before.startswith(prefix)):
        return Kind.TYPING
    if before + after == prefix + suffix or abs(len(prefix) - len(before)) > _NEAR:
        return Kind.JUMP
    return Kind.ABOVE if suffix == after else Kind.BELOW
