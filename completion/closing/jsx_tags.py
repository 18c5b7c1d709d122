"""Finds JSX elements that are still open, without parsing, so that unfinished code works."""

from __future__ import annotations

import re
from collections.abc import Iterator

# After a name, `<` compares or begins type arguments.
_MARK = re.compile(r"(?:(?<![\w)\]])<|<(?=/))(?P<closes>/?)(?P<name>[A-Za-z][\w.:-]*|(?=>))|[{}>]")

Tag = tuple[int, str]
"""Offset of a tag, and what closes its element, or itself where its `>` is missing."""


def open_tags(before: str, after: str) -> list[Tag]:
    """Return the tags of the elements that `before` leaves open and `after` does not close, outermost first.

    Of several elements of the same name, the innermost stay open, because these are being typed.
    """
    waiting, _ = _matched(before)
    for closer in _matched(after)[1]:
        outermost = next((index for index, tag in enumerate(waiting) if tag[1] == closer), None)
        if outermost is not None:
            del waiting[outermost]
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
    """Yield each tag's offset, what closes its element, and whether it does so itself; none for `<a />`.

    What is within braces of a tag is code, where `>` does not end the tag.
    """
    begun: re.Match[str] | None = None
    depth = 0
    for mark in _MARK.finditer(text):
        if mark.group() in "{}":
            depth += 1 if mark.group() == "{" else -1
        elif mark.group() != ">":
            if begun is None or depth <= 0:
                if begun is not None:
                    yield begun.start(), "/>", False
                begun, depth = mark, 0
        elif begun is not None and depth <= 0:
            closes = bool(begun["closes"])
            if closes or text[mark.start() - 1] != "/":
                yield begun.start(), f"</{begun['name']}>", closes
            begun = None
    if begun is not None:
        yield begun.start(), "/>", False
