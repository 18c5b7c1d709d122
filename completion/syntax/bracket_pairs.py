"""Matches the brackets that are open at the cursor with the closers after it, by line and indentation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from completion.syntax.brackets import SCAN_AFTER, Bracket, Scan
from completion.syntax.indent_style import columns, depth
from completion.syntax.lexer import CLOSER_OF

_BEGINS_CODE = re.compile(r"\w")
_STATEMENT_ENDS = ("{", "}", ";")


@dataclass(frozen=True, slots=True)
class OpenBracket:
    """An opener before the cursor.

    Attributes:
        character: The opener.
        closed_at: Offset of its closer in the text after the cursor, `SCAN_AFTER` if it is further down than that text
            goes; None if the document has none.
    """

    character: str
    closed_at: int | None


def open_at_cursor(before: Scan, after: Scan, before_text: str, after_text: str) -> tuple[OpenBracket, ...]:
    """Match openers before the cursor with closers after it; return the openers, innermost last.

    A closer on the cursor's line matches the innermost opener of its kind. A closer that begins a later line matches
    the opener whose line has the same indentation, else the opener whose statement begins on a line of that
    indentation, as a class whose header goes on in a second line. If closers are missing, the innermost openers of the
    cursor's line stay unmatched, because that line is being typed. So does the innermost opener of a block that is
    indented like the block around it, as a namespace's, if other code with that indentation precedes the closer.

    Args:
        before: Scan of `before_text`.
        after: Scan of `after_text`.
        before_text: Text that ends at the cursor.
        after_text: Text that begins at the cursor.
    """
    line_end = (after_text + "\n").index("\n")
    near = [closer for closer in after.unopened if closer.offset < line_end]
    waiting = list(before.open)
    closed = _pair(waiting, near, before_text, after_text)
    later = list(after.unopened[len(near) :])
    _leave_open(waiting, later, before_text.rfind("\n") + 1)
    if _is_block_open(waiting, later, before_text, after_text):
        waiting.pop()
    closed |= _pair(waiting, later, before_text, after_text)
    if len(after_text) >= SCAN_AFTER:
        closed |= dict.fromkeys(_closed_below(waiting, before_text, after_text), SCAN_AFTER)
    return tuple(OpenBracket(opener.character, closed.get(opener.offset)) for opener in before.open)


def _pair(waiting: list[Bracket], found: list[Bracket], before_text: str, after_text: str) -> dict[int, int]:
    """Return the offsets of matched openers and closers; remove matched and skipped openers from `waiting`."""
    closed: dict[int, int] = {}
    fitting = _by_closer(waiting, before_text) if found else {}
    by_head: dict[tuple[str, str], list[int]] | None = None
    for closer in found:
        indent = _indent_of_first(after_text, closer.offset)
        chosen = _last_below(len(waiting), fitting.get((closer.character, indent), []))
        if chosen is None and indent is not None:
            by_head = _by_head(waiting, before_text) if by_head is None else by_head
            chosen = _last_below(len(waiting), by_head.get((closer.character, indent), []))
        if chosen is None:
            chosen = _last_below(len(waiting), fitting.get((closer.character, None), []))
        if chosen is not None:
            closed[waiting[chosen].offset] = closer.offset
            del waiting[chosen:]
    return closed


def _by_closer(waiting: list[Bracket], text: str) -> dict[tuple[str, str | None], list[int]]:
    """Return ascending indices of openers by closer and indentation of their line, and by closer alone (None)."""
    fitting: dict[tuple[str, str | None], list[int]] = {}
    indents: dict[int, str] = {}
    for index, opener in enumerate(waiting):
        start = text.rfind("\n", 0, opener.offset) + 1
        if start not in indents:
            indents[start] = _indent(text, start, opener.offset)
        for indent in (indents[start], None):
            fitting.setdefault((CLOSER_OF[opener.character], indent), []).append(index)
    return fitting


def _by_head(waiting: list[Bracket], text: str) -> dict[tuple[str, str], list[int]]:
    """Return ascending indices of openers below their statement's first line by closer and that line's indentation."""
    fitting: dict[tuple[str, str], list[int]] = {}
    outside = -1
    for index, opener in enumerate(waiting):
        indent = _head_indent(text, outside, opener.offset)
        outside = opener.offset
        if indent is not None:
            fitting.setdefault((CLOSER_OF[opener.character], indent), []).append(index)
    return fitting


def _head_indent(text: str, outside: int, opener: int) -> str | None:
    """Return the indentation of the line above an opener's where its statement begins; None if that is the same line.

    Args:
        text: Text with the opener.
        outside: Offset of the bracket around the statement, which begins below it; -1 for none.
        opener: Offset of the opener.
    """
    start = text.find("\n", outside, opener) + 1 if outside >= 0 else 0
    if outside >= 0 and not start:
        return None
    *above, own = text[start:opener].split("\n")
    for line in reversed(above):
        if not line.strip() or line.rstrip().endswith(_STATEMENT_ENDS):
            return None
        if depth(line) < depth(own):
            return _indent(line, 0, len(line))
    return None


def _last_below(bound: int, indices: list[int]) -> int | None:
    """Return the last of ascending indices below a bound; remove the others, because the bound only decreases."""
    while indices and indices[-1] >= bound:
        indices.pop()
    return indices[-1] if indices else None


def _leave_open(waiting: list[Bracket], later: list[Bracket], line_start: int) -> None:
    """Remove the innermost openers of the cursor's line from `waiting` if later lines have too few closers.

    This applies to round and square brackets only: indentation tells the closers of blocks apart.
    """
    closers = next((i for i, closer in enumerate(later) if closer.character == "}"), len(later))
    openers = next((i for i, opener in enumerate(reversed(waiting)) if opener.character == "{"), len(waiting))
    for _ in range(openers - closers):
        if waiting[-1].offset >= line_start:
            waiting.pop()


def _is_block_open(waiting: list[Bracket], later: list[Bracket], before_text: str, after_text: str) -> bool:
    """Return whether the innermost block has no closer and is indented like the block around it, whose closer follows.

    Either other code of that indentation precedes the closer, or the block is begun on the cursor's line, nothing
    precedes the closer, and the document has too few closers.
    """
    blocks = [opener for opener in waiting if opener.character == "{"]
    if len(blocks) < 2 or waiting[-1] is not blocks[-1]:
        return False
    outside, inside = (_indent_of_line(before_text, opener.offset) for opener in blocks[-2:])
    closers = [closer.offset for closer in later if closer.character == "}"]
    end = next((offset for offset in closers if _indent_of_first(after_text, offset) == inside), None)
    if inside != outside or end is None:
        return False
    between = [line for line in after_text[:end].split("\n")[1:-1] if line.strip()]
    if any(line.startswith(inside) and _BEGINS_CODE.match(line, len(inside)) for line in between):
        return True
    is_typed = "\n" not in before_text[waiting[-1].offset :]
    return is_typed and not between and len(closers) < len(blocks) and len(after_text) < SCAN_AFTER


def _closed_below(waiting: list[Bracket], before_text: str, after_text: str) -> Iterator[int]:
    """Return the offsets of openers whose block goes on to the end of `after_text`: all of it is indented deeper."""
    least = min((depth(line) for line in after_text.split("\n")[1:] if line.strip()), default=0)
    outside = -1
    for opener in waiting:
        head = _head_indent(before_text, outside, opener.offset)
        indent = _indent_of_line(before_text, opener.offset) if head is None else head
        if columns(indent) < least:
            yield opener.offset
        outside = opener.offset


def _indent_of_line(text: str, offset: int) -> str:
    """Return the leading blanks of the line of an offset."""
    return _indent(text, text.rfind("\n", 0, offset) + 1, offset)


def _indent(text: str, start: int, end: int) -> str:
    """Return the leading blanks of the line from `start` to `end`."""
    line = text[start:end]
    return line[: len(line) - len(line.lstrip())]


def _indent_of_first(text: str, offset: int) -> str | None:
    """Return the leading blanks of a line below the first if its first character is at `offset`; None otherwise."""
    start = text.rfind("\n", 0, offset) + 1
    return text[start:offset] if start and not text[start:offset].strip() else None
