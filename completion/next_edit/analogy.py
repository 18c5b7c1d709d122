"""Analogies: lines that are built like lines that were changed get the same change, with their own names.

`a.x = process_x(a.x)` → `a.x = style(process_x, a.x)` teaches what becomes of `a.y = process_y(a.y)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from completion.edits import LineEdit
from completion.next_edit.rewrites import Candidate, is_word, tokenise
from completion.syntax.indent_style import leading_blanks

MAX_LINES = 6
"""Maximum number of lines of a hunk, before it, that others are compared with."""
MAX_OCCURRENCES = 16
"""Maximum number of places in a document where the same applies; what matches more often is not about the edit."""
CHECKED_LINES = 1_000
"""Number of lines of a document between two checks of the cancellation."""
_MIN_SAME = 0.5  # share of the tokens of two analogous texts that agree
_MIN_TOKENS = 4  # of a text: shorter ones are alike by chance
_WORD = re.compile(r"[^\W\d]\w*")
_NO_PUNCTUATION = re.compile(r"[\w\s]+")


def analogous(
    lines: Sequence[str], edits: Sequence[LineEdit], first: int, edited: set[int], check: Callable[[], None]
) -> Iterator[Candidate]:
    """Yield what becomes of the lines that are built like those that an edit from `first` on has changed.

    Args:
        lines: Lines of the document after the edits.
        edits: The edits, the latest last.
        first: Index of the first edit that others are like.
        edited: Numbers of the lines that the edits have changed, which stay as they are.
        check: Called often; it raises if nobody waits any more.
    """
    marks: list[str] = []
    for start in range(0, len(lines), CHECKED_LINES):
        check()
        marks += map(_punctuation, lines[start : start + CHECKED_LINES])
    for index, edit in enumerate(edits[first:], first):
        for old, new, place in _with_anchors(lines, edit):
            check()
            found = []
            for at, made in _analogies(old, new, lines, marks):
                check()
                there = tuple(lines[at : at + len(old)])
                is_free = edited.isdisjoint(range(at, at + len(old)))
                if is_free and there != made and not _is_made(lines, at, there, made):
                    found.append((at, there, made))
                if len(found) > MAX_OCCURRENCES:
                    break
            pattern = sum(len(tokenise(line)) for line in old)
            for at, there, made in found if len(found) <= MAX_OCCURRENCES else ():
                kinds = frozenset({"analogy"})
                yield Candidate(
                    at, there, made, kinds, index, taught_at=(place, 0), occurrences=len(found), pattern=pattern
                )


def _punctuation(line: str) -> str:
    """Return the characters that are neither words nor blanks: lines that are built alike have the same ones."""
    return _NO_PUNCTUATION.sub("", line)


def _analogies(
    old: Sequence[str], new: Sequence[str], lines: Sequence[str], marks: Sequence[str]
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the first line of each text of `lines` that is built like `old`, and what becomes of it.

    If `new` is nothing, only texts with the same words qualify. If it is `old` with lines before or after it, those do
    whose own words are words of these lines. `marks` is the `_punctuation` of each line.
    """
    shapes = [_shape(line) for line in old]
    if sum(map(len, shapes)) < _MIN_TOKENS or not any(_WORD.search(line) for line in old) or len(old) > MAX_LINES:
        return
    added = _added(old, new)
    first = next(number for number, shape in enumerate(shapes) if shape)
    wanted = _punctuation(old[first])
    for at in range(len(lines) - len(old) + 1):
        if marks[at + first] == wanted:
            there = lines[at : at + len(old)]
            if all(_shape(line) == shape for line, shape in zip(there, shapes, strict=True)):
                names = _names(old, there, 1.0 if not new else _MIN_SAME)
                own = {ours for ours, theirs in (names or {}).items() if ours != theirs}
                if names is not None and (added is None or not own or not own.isdisjoint(added)):
                    yield at, tuple(_renamed(line, names, old, there) for line in new)


def _added(old: Sequence[str], new: Sequence[str]) -> set[str] | None:
    """Return the words of the lines that come before or after the old ones; None if the old ones change."""
    above, below = new[: -len(old)], new[len(old) :]
    for added, kept in ((below, new[: len(old)]), (above, new[-len(old) :])):
        if tuple(kept) == tuple(old):
            return {word for line in added for word in _WORD.findall(line)}
    return None


@lru_cache(maxsize=1 << 14)
def _shape(line: str) -> tuple[str, ...]:
    """Return the tokens of a line with one symbol for each word."""
    return tuple("w" if _WORD.match(token[0]) else token[0] for token in tokenise(line))


def _names(old: Sequence[str], there: Sequence[str], min_same: float) -> dict[str, str] | None:
    """Return the words there for the words of `old`; None if less than `min_same` of the tokens agree."""
    names: dict[str, str] = {}
    pairs = [
        (ours[0], theirs[0])
        for line, other in zip(old, there, strict=True)
        for ours, theirs in zip(tokenise(line), tokenise(other), strict=True)
    ]
    same = sum(ours == theirs for ours, theirs in pairs)
    if same < min_same * len(pairs) or not any(a == b and is_word(a) for a, b in pairs):
        return None
    for ours, theirs in pairs:
        if names.setdefault(ours, theirs) != theirs:
            return None
    return names


def _renamed(line: str, names: dict[str, str], old: Sequence[str], there: Sequence[str]) -> str:
    """Return a new line with the names and the indentation of the analogous text."""
    ours, theirs = leading_blanks(old[0]), leading_blanks(there[0])
    line = theirs + line[len(ours) :] if line.startswith(ours) and line.strip() else line
    return _WORD.sub(lambda word: names.get(word.group(), word.group()), line)


def _with_anchors(lines: Sequence[str], edit: LineEdit) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], int]]:
    """Yield old lines, new lines and place of an edit; of a pure insertion with the line above or below it."""
    if edit.old:
        yield edit.old, edit.new, edit.line
        return
    if edit.line and lines[edit.line - 1].strip():
        above = lines[edit.line - 1]
        yield (above,), (above, *edit.new), edit.line
    end = edit.line + len(edit.new)
    if end < len(lines) and lines[end].strip():
        yield (lines[end],), (*edit.new, lines[end]), edit.line


def _is_made(lines: Sequence[str], at: int, there: Sequence[str], made: Sequence[str]) -> bool:
    """Return whether the lines around `there` already are what would be made of it."""
    extra = len(made) - len(there)
    return extra > 0 and any(
        tuple(lines[start : start + len(made)]) == tuple(made) for start in range(max(0, at - extra), at + 1)
    )
