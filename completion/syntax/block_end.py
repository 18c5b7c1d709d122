"""Where a block that is being generated ends, by its indentation and its brackets."""

from __future__ import annotations

import re
from typing import NamedTuple

from completion.syntax.brackets import CLOSERS, open_at_cursor, scan
from completion.syntax.indent_style import depth

_LOOK_BEHIND = 16_000
_LOOK_AHEAD = 6_000
_OPENERS = ("{", "(", "[", ":", "=>", "->")
_CLOSING = ")]}\"'`;,: \t"
_GOES_ON = frozenset({"else", "elif", "except", "finally", "catch", "while", "case", "default"})
_WORD = re.compile(r"\w*")


class _Progress(NamedTuple):
    """The whole lines that `BlockEnd.end` has passed.

    Attributes:
        text: Those lines, with their line ends.
        kept_end: Where the last one ends that is not blank.
        floor: Columns that a line of the block is indented by at least.
    """

    text: str
    kept_end: int
    floor: int


class BlockEnd:
    """Finds the end of the block at the cursor in a growing text.

    Behind an opener the block is what is indented deeper than the opener's line, and the closer of it where the
    document has none. On an empty line it is what is indented at least as far as the cursor, and deeper than the next
    line below if it begins so; at the outermost level one definition with its body, or what comes before a blank line.
    With text after the cursor there is no end but that text.
    """

    def __init__(self, prefix: str, suffix: str, language: str) -> None:
        self._language = language
        self._mid_line = bool(suffix.partition("\n")[0].strip(_CLOSING))
        self._line_before = prefix[prefix.rfind("\n") + 1 :]
        behind, ahead = prefix[-_LOOK_BEHIND:], suffix[:_LOOK_AHEAD]
        before = scan(behind, language)
        self._string = before.string
        self._waiting = open_at_cursor(before, scan(ahead, language), behind, ahead)
        self._opened = self._line_before.rstrip().endswith(_OPENERS)
        self._own = depth(self._line_before)
        below = (line for line in ahead.split("\n")[1:] if line.strip())
        self._deeper = depth(next(below, "")) + 1
        self._start = _Progress("", 0, self._own + 1 if self._opened else self._own)
        self._passed = self._start

    def end(self, text: str) -> int | None:
        """Offset where `text` is to be cut because the block is complete; None while it goes on.

        An offset once given stays the same however the text grows; lines that were passed are not looked at again.
        """
        if self._mid_line:
            return None
        earlier, kept_end, floor = self._passed if text.startswith(self._passed.text) else self._start
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
                floor = max(floor, min(depth(whole), self._deeper))
            start += len(line) + 1
            if index < len(lines) - 1:
                self._passed = _Progress(text[:start], kept_end, floor)
        return None

    def _cut(self, earlier: str, line: str, floor: int, kept_end: int, *, last: bool) -> int | None:
        """Where the block ends if `line`, which follows `earlier`, is outside it; None if it is inside or undecided."""
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
        """Whether a line that follows `text` continues an expression or a string."""
        found = scan(text, self._language, self._string)
        return bool(found.string) or any(bracket.character != "{" for bracket in found.open)

    def _leaves(self, line: str, floor: int) -> bool:
        if floor:
            return depth(line) < floor
        return not depth(line) and line[0] not in CLOSERS and _WORD.findall(line)[0] not in _GOES_ON

    def _closes(self, earlier: str, line: str) -> bool:
        """Whether `line` begins with a closer that the text, or the document before the cursor, waits for."""
        found = scan(earlier, self._language, self._string)
        if line[0] not in CLOSERS:
            return False
        waiting = bool(self._waiting) and self._waiting[-1].closed_at is None and not found.unopened
        return bool(found.open) or waiting


class BlockEnds:
    """Block ends at one cursor, made once for a request: stop rules and filters ask after every step.

    Args:
        prefix: Text before the cursor.
        suffix: Text after the cursor.
        language: LSP language identifier.
    """

    def __init__(self, prefix: str, suffix: str, language: str) -> None:
        self._prefix, self._suffix, self._language = prefix[-_LOOK_BEHIND:], suffix, language
        self._ends: dict[str, BlockEnd] = {}

    def after(self, text: str = "") -> BlockEnd:
        """Return the end of the block that follows the cursor and `text`, which stands at the cursor."""
        end = self._ends.get(text)
        if end is None:
            end = self._ends[text] = BlockEnd(self._prefix + text, self._suffix, self._language)
        return end
