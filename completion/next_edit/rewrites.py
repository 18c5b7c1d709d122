"""Rewrites, substitutions of tokens old → new with holes for what both sides have in common, and what they make.

A hole matches any tokens with balanced brackets. `Optional[str]` → `str | None` teaches `Optional[·]` → `· | None`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

_TOKEN = re.compile(r"[^\W\d]\w*|\d[\w.]*|[^\w\s]")
_WORD = re.compile(r"[^\W\d]\w+\Z")
_GLUED = re.compile(r"\w\w")
OPENERS, CLOSERS = "([{", ")]}"
_MAX_HOLE = 40  # maximum number of tokens that a hole matches

HOLE = ""
"""Element of a pattern that matches any balanced tokens."""


class RewriteKind(StrEnum):
    """What a rewrite was made of."""

    NAME = "name"  # one word becomes another word
    PART = "part"  # the same within a longer run that changes, or at one of its places in a line
    TOKENS = "tokens"  # a run of tokens with a word
    HOLES = "holes"  # changed tokens around unchanged ones
    CONTEXT = "context"  # tokens without a word, known by their neighbours
    CALL = "call"  # an argument or element is added at either end of brackets


Token = re.Match[str]
"""A token of a line, without blanks."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A substitution.

    Attributes:
        old: Tokens to replace; HOLE matches any balanced tokens.
        new: Text to put there: a string, or the number of a hole whose text is kept.
        kind: What it was made of.
        column: Column of the changed text in the old line that taught it.
    """

    old: tuple[str, ...]
    new: tuple[str | int, ...]
    kind: RewriteKind
    column: int = 0


@lru_cache(maxsize=1 << 10)  # several rewrites are applied to the same lines
def tokenise(line: str) -> Sequence[Token]:
    """Return the tokens of a line."""
    return tuple(_TOKEN.finditer(line))


def is_word(text: str) -> bool:
    """Return whether a token is a name or keyword of two letters or more."""
    return _WORD.match(text) is not None


def apply(rewrite: Rewrite, line: str, only: int | None = None) -> tuple[str, list[int]]:
    """Return the line with the rewrite applied wherever it matches, and the columns of these places.

    With `only` it is applied at one column.
    """
    tokens, kept, columns, copied, at = tokenise(line), list[str](), list[int](), 0, 0
    while at < len(tokens):
        matched = _match(rewrite.old, tokens, at)
        if matched is None:
            at += 1
            continue
        end, holes = matched
        start, stop = tokens[at].start(), tokens[end - 1].end()
        new = "".join(part if isinstance(part, str) else _text(line, tokens, holes[part]) for part in rewrite.new)
        has_neighbour = rewrite.kind is not RewriteKind.CALL or holes[0][0] < holes[0][1]  # from which it is separated
        if only in (None, start) and has_neighbour and _fits(line, start, stop, new):
            if not new:
                start, stop = _with_blanks(line, start, stop)
            kept += [line[copied:start], new]
            copied = stop
            columns.append(tokens[at].start())
        at = end
    return "".join([*kept, line[copied:]]), columns


def _match(pattern: Sequence[str], tokens: Sequence[Token], at: int) -> tuple[int, list[tuple[int, int]]] | None:
    """Return the end of the pattern's match at a token, and the spans of its holes; None if it does not match."""
    holes = []
    for index, wanted in enumerate(pattern):
        if wanted == HOLE:
            end = _hole_end(tokens, at, pattern[index + 1])
            if end is None:
                return None
            holes.append((at, end))
            at = end
        elif at < len(tokens) and tokens[at][0] == wanted:
            at += 1
        else:
            return None
    return at, holes


def _hole_end(tokens: Sequence[Token], at: int, following: str) -> int | None:
    depth = 0
    for end in range(at, min(len(tokens), at + _MAX_HOLE)):
        text = tokens[end][0]
        if depth == 0 and text == following:
            return end
        depth += (text in OPENERS) - (text in CLOSERS)
        if depth < 0:
            return None
    return None


def _text(line: str, tokens: Sequence[Token], span: tuple[int, int]) -> str:
    return line[tokens[span[0]].start() : tokens[span[1] - 1].end()] if span[0] < span[1] else ""


def _fits(line: str, start: int, stop: int, new: str) -> bool:
    """Return whether new text can replace the old one: no words join, and what it adds is not there already."""
    if any(map(_GLUED.match, (line[:start][-1:] + new[:1], new[-1:] + line[stop : stop + 1]))):
        return False
    old = line[start:stop]
    at = new.find(old)
    while at >= 0:
        if start >= at and line.startswith(new, start - at):
            return False
        at = new.find(old, at + 1)
    return old != new


def _with_blanks(line: str, start: int, stop: int) -> tuple[int, int]:
    """Extend a deleted span by the blanks that would be left over."""
    blanks = len(line[stop:]) - len(line[stop:].lstrip(" \t"))
    if line[:start].endswith((" ", *OPENERS)) or not line[:start].strip():
        return start, stop + blanks
    if not line[stop + blanks :] or line[stop + blanks] in ",;:)]}":
        return len(line[:start].rstrip(" \t")), stop
    return start, stop


REPORTED = "reported"
"""Kind of a candidate that takes away a word which a diagnostic of its line names."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A change of whole lines.

    Attributes:
        line: First line that it replaces, from 0.
        old: Lines that it replaces; never empty.
        kinds: What proposed it: kinds of rewrites, "analogy", "combined", `REPORTED`.
        edit: Index of the newest edit that taught it.
        column: Column of the first changed text.
        taught_at: Line and column, in the document now, of the edit that taught it.
        occurrences: Number of places of the document that the same rule matches.
        pattern: Number of tokens of the rule's old side.
        votes: Number of edits that teach the same.
    """

    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    kinds: frozenset[str]
    edit: int
    column: int = 0
    taught_at: tuple[int, int] = (0, 0)
    occurrences: int = 1
    pattern: int = 0
    votes: int = 1

    @property
    def end(self) -> int:
        """Line after the last one that it replaces."""
        return self.line + len(self.old)

    @property
    def is_part(self) -> bool:
        """Whether it is a part of what an edit teaches: right only if its name has lost its definition."""
        return self.kinds == {RewriteKind.PART}

    @property
    def names(self) -> frozenset[str]:
        """Words that it takes away."""
        return frozenset(filter(is_word, tokens_of(self.old) - tokens_of(self.new)))


def words(lines: Sequence[str]) -> frozenset[str]:
    """Return the words of some lines."""
    return frozenset(filter(is_word, tokens_of(lines)))


def tokens_of(lines: Sequence[str]) -> Counter[str]:
    """Return how often each token is in some lines."""
    return Counter(token[0] for line in lines for token in tokenise(line))
