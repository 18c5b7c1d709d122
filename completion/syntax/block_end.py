"""Finds the end of a block while it is generated, by its indentation and brackets."""

from __future__ import annotations

import re
from typing import NamedTuple

from completion.syntax.brackets import CLOSERS, open_at_cursor, scan
from completion.syntax.indent_style import depth

_PREFIX_CHARACTERS = 16_000
_SUFFIX_CHARACTERS = 6_000
_OPENERS = ("{", "(", "[", ":", "=>", "->")
_CLOSING = ")]}\"'`;,: \t"
_GOES_ON = frozenset({"else", "elif", "except", "finally", "catch", "while", "case", "default"})
_WORD = re.compile(r"\w*")


class _Progress(NamedTuple):
    """The whole lines that `BlockEnd.end` has processed.

    Attributes:
        text: The lines with their line ends.
        kept_end: Offset of the end of the last non-blank line.
        floor: Minimum indentation of the block's lines in columns.
    """

    text: str
    kept_end: int
    floor: int


class BlockEnd:
    """Finds the end of the block at the cursor in a growing text.

    After an opener, the block is all lines indented deeper than the opener's line, and the closer if the document has
    none. On an empty line, it is all lines indented at least as far as the cursor, and deeper than the next line below
    if its first line is. At the outermost level, it is one definition with its body, or the lines before a blank line.
    With text after the cursor on its line, the block has no end.
    """

    def __init__(self, prefix: str, suffix: str, language: str) -> None:
        self._language = language
        self._mid_line = bool(suffix.partition("\n")[0].strip(_CLOSING))
        self._line_before = prefix[prefix.rfind("\n") + 1 :]
        near_before, near_after = prefix[-_PREFIX_CHARACTERS:], suffix[:_SUFFIX_CHARACTERS]
        before = scan(near_before, language)
        self._string = before.string
        self._waiting = open_at_cursor(before, scan(near_after, language), near_before, near_after)
        self._opened = self._line_before.rstrip().endswith(_OPENERS)
        self._cursor_depth = depth(self._line_before)
        below = (line for line in near_after.split("\n")[1:] if line.strip())
        self._max_floor = depth(next(below, "")) + 1
        self._start = _Progress("", 0, self._cursor_depth + 1 if self._opened else self._cursor_depth)
        self._processed = self._start

    def end(self, text: str) -> int | None:
        """Return the offset where the block in `text` ends; None while it continues.

        A returned offset stays the same however the text grows. Processed lines are not processed again.
        """
        if self._mid_line:
            return None
        earlier, kept_end, floor = self._processed if text.startswith(self._processed.text) else self._start
        start = len(earlier)
        lines = text[start:].split("\n")
        for index, line in enumerate(lines):
            whole = line if start else self._line_before + line
            if start:
                cut = self._cut(text[:start], line, floor, kept_end, last=index == len(lines) - 1)
                if cut is not None:
                    return cut
            if whole.strip():
                kept_end = start + len(line.removesuffix("\r"))
                floor = max(floor, min(depth(whole), self._max_floor))
            start += len(line) + 1
            if index < len(lines) - 1:
                self._processed = _Progress(text[:start], kept_end, floor)
        return None

    def _cut(self, earlier: str, line: str, floor: int, kept_end: int, *, last: bool) -> int | None:
        """Return where the block ends if `line` after `earlier` is outside it; None if it is inside or undecided."""
        text = line.strip()
        if self._inside(earlier):
            return None
        if not text:
            return kept_end if floor == 0 and kept_end and not last else None
        if not self._leaves(line, floor) or (last and any(word.startswith(line.lstrip()) for word in _GOES_ON)):
            return None
        if not self._closes(earlier, text):
            return kept_end
        return None if last or text.endswith(_OPENERS) else len(earlier) + len(line.rstrip())

    def _inside(self, text: str) -> bool:
        """Return whether a line after `text` continues an expression or a string."""
        found = scan(text, self._language, self._string)
        return bool(found.string) or any(bracket.character != "{" for bracket in found.open)

    def _leaves(self, line: str, floor: int) -> bool:
        if floor:
            return depth(line) < floor
        return not depth(line) and line[0] not in CLOSERS and _WORD.findall(line)[0] not in _GOES_ON

    def _closes(self, earlier: str, line: str) -> bool:
        """Return whether `line` begins with the closer of a bracket that the text or the document leaves open."""
        found = scan(earlier, self._language, self._string)
        if line[0] not in CLOSERS:
            return False
        waiting = bool(self._waiting) and self._waiting[-1].closed_at is None and not found.unopened
        return bool(found.open) or waiting


class BlockEnds:
    """A cache of block ends at one cursor, which stop rules and filters use after every step of a request.

    Args:
        prefix: Text before the cursor.
        suffix: Text after the cursor.
        language: LSP language identifier.
    """

    def __init__(self, prefix: str, suffix: str, language: str) -> None:
        self._prefix, self._suffix, self._language = prefix[-_PREFIX_CHARACTERS:], suffix, language
        self._ends: dict[str, BlockEnd] = {}

    def after(self, text: str = "") -> BlockEnd:
        """Return the block end for a cursor after `text`, which is inserted at the request's cursor."""
        end = self._ends.get(text)
        if end is None:
            end = self._ends[text] = BlockEnd(self._prefix + text, self._suffix, self._language)
        return end
