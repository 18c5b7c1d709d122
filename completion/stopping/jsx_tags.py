"""Finds JSX elements that are still open, without parsing, so that unfinished code works."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TAG = re.compile(
    r"(?:(?<![\w)\]])<|<(?=/))(/?)([A-Za-z][\w.:-]*|(?=>))"
)  # after a name, `<` compares or begins type arguments

Tag = tuple[int, str]
"""Offset of a tag, and what closes its element, or itself where its `>` is missing."""


def open_tags(before: str, after: str) -> list[Tag]:
    """Return the tags of the elements that `before` leaves open and `after` does not close, outermost first."""
    waiting, _ = _matched(before)
    for closer in _matched(after)[1]:
        innermost = next((index for index in reversed(range(len(waiting))) if waiting[index][1] == closer), None)
        if innermost is not None:
            del waiting[innermost]
    return waiting


def _matched(text: str) -> tuple[list[Tag], list[str]]:
    """Return the tags whose elements stay open in a text, and the closing tags of elements from before it."""
    waiting: list[Tag] = []
    alone: list[str] = []
    for offset, closer, closes in _tags(text):
        if not closes:
            waiting.append((offset, closer))
        elif waiting and waiting[-1][1] == closer:
            waiting.pop()
        elif not waiting:
            alone.append(closer)
    return waiting, alone


def _tags(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield each tag's offset, what closes its element, and whether it does so itself; none for `<a />`."""
    position = 0
    while match := _TAG.search(text, position):
        end = _tag_end(text, match.end())
        position = match.end() if end is None else end
        if end is None:
            yield match.start(), "/>", False
        elif text[end - 2] != "/" or match.group(1):
            yield match.start(), f"</{match.group(2)}>", bool(match.group(1))


def _tag_end(text: str, start: int) -> int | None:
    """Return the offset after the `>` of a tag, None if it has none yet; one within braces belongs to code."""
    depth = 0
    for at in range(start, len(text)):
        character = text[at]
        depth += (character == "{") - (character == "}")
        if character == ">" and depth <= 0:
            return at + 1
    return None
