"""Matches the brackets that are open at the cursor with the closers after it, by line and indentation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from completion.syntax.brackets import SCAN_AFTER, Bracket, Scan
from completion.syntax.indent_style import depth, leading_blanks
from completion.syntax.lexer import CLOSER_OF

_BEGINS_CODE = re.compile(r"\w")
_STATEMENT_ENDS = ("{", "}", ";")
_MOST_AROUND = 50  # openers, from the innermost one on, among which a closer finds its own


@dataclass(slots=True)
class OpenBracket:
    """An opener before the cursor.

    Attributes:
        character: The opener.
        offset: Its offset in the text before the cursor.
        blanks: Blanks that its line begins with.
        head: Blanks of the line that begins its statement.
        closed_at: Offset of its closer in the text after the cursor, `SCAN_AFTER` if it is further down than that text
            goes; None if the document has none.
    """

    character: str
    offset: int
    blanks: str
    head: str
    closed_at: int | None = None


def open_at_cursor(before: Scan, after: Scan, before_text: str, after_text: str) -> tuple[OpenBracket, ...]:
    """Match openers before the cursor with closers after it; return the openers, innermost last.

    A closer on the cursor's line matches the innermost opener of its kind. A closer that begins a later line matches
    the opener whose line has the same indentation, else the opener whose statement begins on a line of that
    indentation, as a class whose header goes on in a second line. If closers are missing, the innermost openers of the
    cursor's line stay unmatched, because that line is being typed. So does the innermost opener of a block that is
    indented like the block around it, as a namespace's, if other code with that indentation precedes the closer.
    """
    line_end = (after_text + "\n").index("\n")
    near = [closer for closer in after.unopened if closer.offset < line_end]
    later = list(after.unopened[len(near) :])
    openers = tuple(_openers(before.open, before_text))
    waiting = list(openers)
    _pair(waiting, near, after_text)
    line_start = before_text.rfind("\n") + 1
    _leave_open(waiting, later, line_start)
    if _is_block_open(waiting, later, after_text, line_start):
        waiting.pop()
    _pair(waiting, later, after_text)
    if len(after_text) >= SCAN_AFTER:  # a block goes on to its end if all of it is indented deeper
        least = min((depth(line) for line in after_text.split("\n")[1:] if line.strip()), default=0)
        for opener in waiting:
            opener.closed_at = SCAN_AFTER if depth(opener.head) < least else None
    return openers


def _openers(found: Iterable[Bracket], text: str) -> Iterator[OpenBracket]:
    around = -1
    for opener in found:
        own = text[text.rfind("\n", 0, opener.offset) + 1 : opener.offset]
        yield OpenBracket(opener.character, opener.offset, leading_blanks(own), _head(text, around, opener.offset))
        around = opener.offset


def _head(text: str, around: int, opener: int) -> str:
    """Return the blanks of the line where an opener's statement begins, below the bracket around it (-1 for none)."""
    *above, own = text[text.rfind("\n", 0, max(around, 0)) + 1 : opener].split("\n")
    for line in reversed(above if around < 0 else above[1:]):
        if not line.strip() or line.rstrip().endswith(_STATEMENT_ENDS):
            break
        if depth(line) < depth(own):
            return leading_blanks(line)
    return leading_blanks(own)


def _pair(waiting: list[OpenBracket], found: Iterable[Bracket], text: str) -> None:
    """Match closers of a text with openers; remove matched and skipped openers from `waiting`."""
    for closer in found:
        start = text.rfind("\n", 0, closer.offset) + 1
        blanks = text[start : closer.offset] if start and not text[start : closer.offset].strip() else None
        near = range(len(waiting))[: -_MOST_AROUND - 1 : -1]
        alike = [index for index in near if CLOSER_OF[waiting[index].character] == closer.character]
        by_line = (index for index in alike if waiting[index].blanks == blanks)
        by_head = (index for index in alike if waiting[index].head == blanks)
        chosen = next(chain(by_line, by_head, alike), None)
        if chosen is not None:
            waiting[chosen].closed_at = closer.offset
            del waiting[chosen:]


def _leave_open(waiting: list[OpenBracket], later: list[Bracket], line_start: int) -> None:
    """Remove the innermost openers of the cursor's line from `waiting` if later lines have too few closers.

    This applies to round and square brackets only: indentation tells the closers of blocks apart.
    """
    closers = next((i for i, closer in enumerate(later) if closer.character == "}"), len(later))
    openers = next((i for i, opener in enumerate(reversed(waiting)) if opener.character == "{"), len(waiting))
    for _ in range(openers - closers):
        if waiting[-1].offset >= line_start:
            waiting.pop()


def _is_block_open(waiting: list[OpenBracket], later: list[Bracket], text: str, line_start: int) -> bool:
    """Return whether the innermost block has no closer and is indented like the block around it, whose closer follows.

    Either other code of that indentation precedes the closer, or the block is begun on the cursor's line, nothing
    precedes the closer, and the document has too few closers.
    """
    blocks = [opener for opener in waiting if opener.character == "{"]
    if len(blocks) < 2 or waiting[-1] is not blocks[-1] or blocks[-1].blanks != blocks[-2].blanks:
        return False
    blanks, closers = blocks[-1].blanks, [closer.offset for closer in later if closer.character == "}"]
    end = next((offset for offset in closers if text[:offset].endswith(f"\n{blanks}")), None)
    if end is None:
        return False
    between = [line for line in text[:end].split("\n")[1:-1] if line.strip()]
    if any(line.startswith(blanks) and _BEGINS_CODE.match(line, len(blanks)) for line in between):
        return True
    is_typed = waiting[-1].offset >= line_start
    return is_typed and not between and len(closers) < len(blocks) and len(text) < SCAN_AFTER
