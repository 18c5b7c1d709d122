"""Edits of whole lines: those that a user made, and those that may come next; the span in which two texts differ.

This module loads no library, so that the language server can use these types without the model.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from completion.language_ids import OfLanguage

T = TypeVar("T", str, bytes, list[str], list[int], tuple[int, ...])

MAX_LINE_CHARACTERS = 300
"""Maximum length of a line of an edit; a longer one is data."""
MAX_EDITS = 16
"""Maximum number of edits of a request."""
MAX_HISTORY_CHARACTERS = 8_000
"""Maximum length of the `history` of a completion: longer than the part that a local model's prompt shows."""
MAX_DIAGNOSTICS = 64
"""Maximum number of diagnostics of a request."""
MAX_MESSAGE_CHARACTERS = 300
"""Maximum length of a diagnostic's message, which names what is wrong in its first words."""


def common_length(one: T, other: T) -> int:
    """Return the length of the common beginning. Bisects, because comparing slices is fast."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def changed_span(old: T, new: T) -> tuple[int, int, int]:
    """Return the start of the difference, its end in the old version and its end in the new one."""
    start = common_length(old, new)
    tail = common_length(old[start:][::-1], new[start:][::-1])
    return start, len(old) - tail, len(new) - tail


@dataclass(frozen=True, slots=True)
class LineEdit:
    """A change of whole lines that the user made.

    Attributes:
        line: First of its lines in the document now, from 0.
        old: Lines before it, without their ends.
        new: Lines now; those from `line` on.
    """

    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]

    def hunk(self) -> str:
        """Return the edit as a hunk of a diff; "" if it changes only blanks or has too long a line."""
        if "".join("".join(self.old).split()) == "".join("".join(self.new).split()) or any(
            len(line) > MAX_LINE_CHARACTERS for line in (*self.old, *self.new)
        ):
            return ""
        return "".join(["@@\n", *(f"-{line}\n" for line in self.old), *(f"+{line}\n" for line in self.new)])


def lost_words(edits: Sequence[LineEdit]) -> frozenset[str]:
    """Return the words of two letters or more that some edits took out of their lines."""
    old, new = (
        {word for edit in edits for line in getattr(edit, side) for word in re.findall(r"[^\W\d]\w+", line)}
        for side in ("old", "new")
    )
    return frozenset(old - new)


def edits_of(history: str) -> list[LineEdit]:
    """Return the edits of hunks that `LineEdit.hunk` has written, below all lines, since their places are not known."""
    hunks = [hunk.split("\n") for hunk in re.split(r"^@@\n", history, flags=re.MULTILINE) if hunk]
    sides = [[tuple(line[1:] for line in hunk if line.startswith(sign)) for sign in "-+"] for hunk in hunks]
    return [LineEdit(sys.maxsize, old, new) for old, new in sides]


def undone(lines: Sequence[str], edits: Sequence[LineEdit]) -> list[str]:
    """Return the lines before edits that do not overlap."""
    before = list(lines)
    for edit in sorted(edits, key=lambda edit: -edit.line):
        before[edit.line : edit.line + len(edit.new)] = edit.old
    return before


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """An error or warning of another tool.

    Attributes:
        line: First of its lines in the document now, from 0.
        message: What it says, at most `MAX_MESSAGE_CHARACTERS` characters.
    """

    line: int
    message: str


@dataclass(frozen=True, slots=True)
class NextEditRequest(OfLanguage):
    """A request for what the user's last edits imply for the rest of a document.

    `language`, `path`, `document` and `order` are as in `CompletionRequest`.

    Attributes:
        lines: Lines of the document, without their ends.
        edits: The edits, the latest last; at most `MAX_EDITS`.
        diagnostics: What other tools report about the document, at most `MAX_DIAGNOSTICS`.
        refused: Fingerprints of the edits that the user refused in this document; none of them is found.
        invoked: Whether the request is manual: the best edit is found, unless it is probably wrong.
        elsewhere: Lines of another document of the language. Unless there are none, edits are found only there, of what
            uses a name that lost its definition here; `refused` is about that document.
    """

    lines: tuple[str, ...]
    edits: tuple[LineEdit, ...]
    language: str = ""
    path: str = ""
    document: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()
    refused: tuple[str, ...] = ()
    invoked: bool = False
    order: int = 0
    elsewhere: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NextEdit:
    """A change of whole lines that the user probably makes next.

    Attributes:
        line: First line that it replaces, from 0.
        old: Lines that it replaces, exactly as they are; never empty.
        new: Lines in their place.
        probability: Probability that the user makes it.
    """

    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    probability: float

    @property
    def fingerprint(self) -> str:
        """What stays the same wherever its lines move: a digest, without source text."""
        return fingerprint(self.old, self.new)


@dataclass(frozen=True, slots=True)
class NextEdits:
    """The answer to a `NextEditRequest`: edits that do not overlap, in the order in which to show them."""

    edits: tuple[NextEdit, ...] = ()


def fingerprint(old: Sequence[str], new: Sequence[str]) -> str:
    """Return a digest of the lines of an edit, which tells nothing about them."""
    import hashlib  # noqa: PLC0415 - the process that parses does without it

    text = json.dumps([old, new]).encode()
    return hashlib.blake2b(text, digest_size=16).hexdigest()
