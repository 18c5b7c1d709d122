"""Finds the end of a block while it is generated, by its indentation and brackets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

from completion.syntax.bracket_pairs import open_at_cursor
from completion.syntax.brackets import CLOSERS, LINE_CLOSERS, SCAN_AFTER, Lexer, scan
from completion.syntax.indent_style import BLOCK_OPENERS, WRAP_OPENERS, depth, line_around
from completion.syntax.line_roles import (
    closes_block,
    continues_block,
    is_clause,
    is_item,
    is_preprocessed,
    may_stay_in_block,
    opens_alike,
    opens_body,
    opens_lines,
)
from completion.syntax.table import row_of

_OPENERS = (*BLOCK_OPENERS, *WRAP_OPENERS)


class _Progress(NamedTuple):
    """The whole lines that `BlockEnd.end` has processed.

    Attributes:
        text: The lines with their line ends.
        kept_end: Offset of the end of the last non-blank line.
        floor: Minimum indentation of the block's lines in columns.
        begun: Whether the block's first line, which decides on the floor, is among them.
    """

    text: str
    kept_end: int
    floor: int
    begun: bool


class BlockEnd:
    """Finds the end of the block at the cursor in a growing text.

    After an opener, the block is all lines indented deeper than the opener's line, and the closer if the document has
    none. On an empty line, it is all lines indented at least as far as the cursor, and deeper than the next line below
    if its first line is, and the word or tag that closes what the line above them opens, if the document has none. At
    the outermost level, it is one statement or definition with its body, the comments and decorators above it, and what
    continues and closes it (`else:`, a brace on its own line, `end`, `</ul>`); in SQL, all lines up to a semicolon or a
    blank line, with those of a body between two `$$`. Preprocessor lines and the lines of a heredoc have any
    indentation. With text after the cursor on its line, the block has no end.
    """

    def __init__(self, prefix: str, suffix: str, language: str) -> None:
        self._language = language
        self._mid_line = bool(suffix.partition("\n")[0].strip(LINE_CLOSERS))
        self._line_before = prefix[prefix.rfind("\n") + 1 :]
        near_after = suffix[:SCAN_AFTER]
        before = scan(prefix, language)
        self._lexer, self._row = Lexer(language, before), row_of(language)
        self._waiting = open_at_cursor(before, scan(near_after, language), prefix, near_after)
        opened = opens_lines(self._line_before, language) or self._line_before.rstrip().endswith(_OPENERS)
        own_depth = depth(self._line_before)
        below = [line for line in near_after.split("\n")[1:] if line.strip()]
        self._max_floor = depth(below[0] if below else "") + 1
        self._near_before, self._below = prefix, below
        self._unclosed = _unclosed_head(prefix, below, language)
        self._statement_end = None if own_depth or opened else self._row.statement_end
        opening, rest = (self._marks(each) for each in (prefix.rstrip().rpartition("\n")[2], near_after))
        self._in_body = opening % 2 == 1 and rest % 2 == 0
        self._opened = opened
        self._start = _Progress("", 0, own_depth + opened, begun=False)
        self._processed = self._start

    def end(self, text: str) -> int | None:
        """Return the offset where the block in `text` ends; None while it continues.

        A returned offset stays the same however the text grows. Processed lines are not processed again.
        """
        if self._mid_line:
            return None
        earlier, kept_end, floor, begun = self._processed if text.startswith(self._processed.text) else self._start
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
                if not begun and (start or not self._opened):
                    floor, begun = max(floor, min(depth(whole), self._max_floor)), True
            start += len(line) + 1
            if index < len(lines) - 1:
                self._processed = _Progress(text[:start], kept_end, floor, begun)
        return None

    def joint(self, text: str) -> tuple[int, int]:
        """Return the length of the part of `text` after which the next line below can follow; all of it if none is.

        A line below that is deeper than the block's first one follows a line as deep as itself, or an opener. The
        second length is of what stays however the text goes on, where its last line may open nothing; it never falls.
        """
        level, lines = self._max_floor - 1, (self._line_before + text).split("\n")
        first = next((line for line in lines if line.strip()), "")
        if self._mid_line or level <= max(self._start.floor, depth(first)):
            return len(text), len(text)
        end, ends = len(text), list[int]()
        for line in reversed(lines):
            if line.strip() and (depth(line) >= level or opens_body(line, self._language)):
                ends.append(end)
                if depth(line) >= level or end < len(text):
                    break
            end -= len(line) + 1
        ends = ends or [len(text)]
        return ends[0], ends[-1]

    def _cut(self, earlier: str, line: str, floor: int, kept_end: int, *, last: bool) -> int | None:
        """Return where the block ends if `line` after `earlier` is outside it; None if it is inside or undecided."""
        text = line.strip()
        if text and depth(line) >= max(floor, 1):
            return None
        if self._within(earlier):
            return None
        if not text:
            ends = self._statement_end is not None or (floor == 0 and not earlier.rstrip().endswith(_OPENERS))
            return kept_end if ends and kept_end and not last else None
        head = self._head(earlier, line)
        if not self._leaves(earlier, line, head, floor) or (last and head and may_stay_in_block(line, self._language)):
            return None
        if not self._closes(earlier, text) and not (head and closes_block(line, head, self._language)):
            return kept_end
        return None if last or text.endswith(_OPENERS) else len(earlier) + len(line.rstrip())

    def _within(self, code: str) -> bool:
        """Return whether a line after `code` may have any indentation.

        It does if it continues an expression, a string or a heredoc, or is in an environment of LaTeX, or in a body
        between two `$$`, whose statements have semicolons too.
        """
        found = self._lexer.scan(code)
        if found.string or found.in_heredoc or any(bracket.character != "{" for bracket in found.open):
            return True
        begun = self._line_before + code if self._unclosed and self._line_before.strip() else code
        in_environment = self._row.environment is not None and begun.count(r"\begin{") > begun.count(r"\end{")
        return in_environment or (self._in_body + self._marks(code)) % 2 == 1

    def _marks(self, code: str) -> int:
        """Return the number of marks beside bodies in code."""
        mark = self._row.body_mark if self._statement_end is not None else None
        return 0 if mark is None else len(mark.findall(code))

    def _leaves(self, code: str, line: str, head: str, floor: int) -> bool:
        """Return whether a line that is not indented deeper than `floor` is outside the block."""
        if is_preprocessed(line, self._language) or (not floor and line[0] in CLOSERS):
            return False
        if self._statement_end is not None and (begun := (self._line_before + code).rstrip()):
            return self._statement_end.search(begun) is not None
        return not (head and continues_block(line, head, self._language))

    def _head(self, code: str, line: str) -> str:
        """Return the line of the text that begins what a line at this depth can continue or close; "" for none."""
        level = depth(line)
        begun, _, further = code.partition("\n")
        if not self._line_before.strip():
            further = f"{self._unclosed}\n{self._line_before}{begun}\n{further}"
        elif self._unclosed or _unclosed_head(self._near_before + begun, self._below, self._language):
            further = f"{self._line_before}{begun}\n{further}"
        above = (each for each in reversed(further.split("\n")) if each.strip() and each.lstrip()[0] not in CLOSERS)
        if self._row.items and is_item(line):  # the key of the list
            above = (each for each in above if not is_item(each))
        nearest = next((each for each in above if depth(each) <= level), "")
        return nearest if depth(nearest) == level else ""

    def _closes(self, code: str, line: str) -> bool:
        """Return whether `line` begins with the closer of a bracket that the text or the document leaves open."""
        if line[0] not in CLOSERS:
            return False
        found = self._lexer.scan(code)
        waiting = bool(self._waiting) and self._waiting[-1].closed_at is None and not found.unopened
        return bool(found.open) or waiting


def _unclosed_head(before: str, below: Sequence[str], language: str) -> str:
    """Return the line that the cursor is on or directly inside of, if the document lacks what closes it; "" if not.

    The lines below are those that are not blank.
    """
    own = before[before.rfind("\n") + 1 :]
    own = own if own.strip() else line_around(before)
    if not opens_lines(own, language):
        return ""
    level, lacking = depth(own), 0
    for lines in (reversed(before.split("\n")), below):
        for line in takewhile(lambda each: not each.strip() or depth(each) >= level, lines):
            if line.strip() and depth(line) == level and not is_clause(line, language):
                lacking += opens_alike(line, own, language) - closes_block(line, own, language)
    return own if lacking > 0 else ""


@lru_cache(maxsize=8)
def block_end_at(prefix: str, suffix: str, language: str) -> BlockEnd:
    """Return what finds the end of the block at a cursor; it is asked about the same growing text again and again.

    The prefix may be its last part, which begins in code.
    """
    return BlockEnd(prefix, suffix, language)
