"""Finds the end of a block while it is generated, by its indentation and brackets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from itertools import takewhile
from typing import NamedTuple

from completion.syntax.bracket_pairs import open_at_cursor
from completion.syntax.brackets import CLOSERS, LINE_CLOSERS, SCAN_AFTER, Lexer, scan, without_heredocs
from completion.syntax.indent_style import depth
from completion.syntax.line_roles import (
    closes_block,
    continues_block,
    is_clause,
    is_item,
    is_preprocessed,
    may_stay_in_block,
    opens_alike,
    opens_lines,
)
from completion.syntax.table import row_of

_OPENERS = ("{", "(", "[", ":", "=>", "->")


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
        self._lexer, self._row = Lexer(language, before if before.string else ""), row_of(language)
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
        self._start = _Progress("", 0, own_depth + opened)
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
        if text and depth(line) >= max(floor, 1):
            return None
        code = without_heredocs(earlier, self._language)
        if self._within_expression(earlier) or self._within_environment(code) or self._within_body(code):
            return None
        if not text:
            ends = self._statement_end is not None or (floor == 0 and not code.rstrip().endswith(_OPENERS))
            return kept_end if ends and kept_end and not last else None
        head = self._head(code, line)
        if not self._leaves(code, line, head, floor) or (last and head and may_stay_in_block(line, self._language)):
            return None
        if not self._closes(earlier, text) and not (head and closes_block(line, head, self._language)):
            return kept_end
        return None if last or text.endswith(_OPENERS) else len(earlier) + len(line.rstrip())

    def _within_expression(self, code: str) -> bool:
        """Return whether a line after `code` continues an expression, a string or a heredoc."""
        found = self._lexer.scan(code)
        return bool(found.string) or found.in_heredoc or any(bracket.character != "{" for bracket in found.open)

    def _within_environment(self, code: str) -> bool:
        """Return whether a line after `code` is in an environment of LaTeX, whose lines are often not indented."""
        begun = self._line_before + code if self._unclosed and self._line_before.strip() else code
        return self._row.environment is not None and begun.count(r"\begin{") > begun.count(r"\end{")

    def _within_body(self, code: str) -> bool:
        """Return whether a line after `code` is in a body between two `$$`, whose statements have semicolons too."""
        return (self._in_body + self._marks(code)) % 2 == 1

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

    Args:
        before: Text before the cursor.
        below: Lines below the cursor's that are not blank.
        language: LSP language identifier.
    """
    *above, own = before.split("\n")
    if not own.strip():
        level = depth(own + "|")
        while above and not (above[-1].strip() and depth(above[-1]) < level):
            above.pop()
        own = above.pop() if above else ""
    if not opens_lines(own, language):
        return ""
    outside = next((line for line in below if depth(line) <= depth(own)), "")
    if depth(outside) == depth(own) and continues_block(outside, own, language):
        return ""
    ends = _unpaired(below, own, language, closers=True)
    others = _unpaired(reversed(above), own, language, closers=False) - is_clause(own, language)
    return own if ends <= others else ""


def _unpaired(lines: Iterable[str], head: str, language: str, *, closers: bool) -> int:
    """Return how many of the lines beside `head` close what no line before them opens, or open what none closes.

    In Julia, the lines of a module are not indented, so the end below a function may be that of the module.
    """
    level = depth(head)
    found = waiting = 0
    for line in takewhile(lambda line: not line.strip() or depth(line) >= level, lines):
        if not line.strip() or depth(line) > level or is_clause(line, language):
            continue
        closes = closes_block(line, head, language)
        if closes == closers and (closes or opens_alike(line, head, language)):
            found, waiting = (found, waiting - 1) if waiting else (found + 1, 0)
        elif closes or opens_alike(line, head, language):
            waiting += 1
        elif closers and not waiting:
            return found  # a statement beside what is open: the rest belongs to what is around it
    return found


class BlockEnds:
    """A cache of block ends at one cursor, which stop rules and filters use after every step of a request.

    Args:
        prefix: Text before the cursor, or its last part, which begins in code.
        suffix: Text after the cursor.
        language: LSP language identifier.
    """

    def __init__(self, prefix: str, suffix: str, language: str) -> None:
        self._prefix, self._suffix, self._language = prefix, suffix, language
        self._inserted = ""
        self._ends: dict[str, BlockEnd] = {}

    def moved(self, text: str) -> BlockEnds:
        """Return the block ends for a cursor after `text`, with the same cache."""
        moved = copy(self)
        moved._inserted += text  # noqa: SLF001 - of the same class
        return moved

    def after(self, text: str = "") -> BlockEnd:
        """Return the block end for a cursor after `text`, which is inserted at the request's cursor."""
        text = self._inserted + text
        end = self._ends.get(text)
        if end is None:
            end = self._ends[text] = BlockEnd(self._prefix + text, self._suffix, self._language)
        return end
