"""Python's rules for indentation that tree-sitter's grammar does not enforce.

The grammar's scanner accepts a dedent to a column that no block has, an over-indented line, and a block without a
body. Source: the Python language reference, section 2.1.8 (columns, tabs to multiples of eight, form feeds).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from completion.grammar.lr.advance import LayoutRule
from completion.grammar.lr.lexer import Lexeme
from completion.grammar.lr.tables import Tables

_TAB_COLUMNS = 8
_BLOCK_COST = 3  # of a block on lines of its own, which is for those that cannot stay on the line of their head
_BLOCKS = frozenset({"block", "_simple_statements", "_newline"})


class Phase(IntEnum):
    """The position of the next lexeme in its logical line."""

    INSIDE = 0
    AFTER_COLON = 1  # a new line must begin a block
    FIRST_OF_LINE = 2
    FIRST_OF_BLOCK = 3


@dataclass(frozen=True, slots=True)
class Layout:
    """The indentation state after some text.

    Attributes:
        levels: Columns of the open blocks, outermost first.
        phase: Position of the next lexeme in its logical line.
    """

    levels: tuple[int, ...]
    phase: Phase


class IndentationRule(LayoutRule):
    """The layout rule of Python. A text that starts inside a block can dedent out of it.

    Attributes:
        costs: The end of a line or block costs an insertion nothing, as the text after it mostly has it.
        barred: A block has at least one statement.
        unfinished: After the block of a `try` stands at least one handler.
    """

    def __init__(self, tables: Tables) -> None:
        by_name = {tables.symbol_name(symbol): symbol for symbol in range(tables.token_count)}
        self._newline, self._indent, self._dedent = (by_name[name] for name in ("_newline", "_indent", "_dedent"))
        self._colon = by_name[":"]
        self._comments = {by_name["comment"], by_name["line_continuation"]}
        self.costs = {self._newline: 0, self._dedent: 0, self._indent: _BLOCK_COST}
        self.barred = {(self._colon, self._newline), (self._indent, self._dedent)}
        names = {each: tables.symbol_name(each) for each in range(tables.symbol_count)}
        blocks = {each for each, name in names.items() if name in _BLOCKS}
        self.unfinished = {(each, block) for each, name in names.items() if name == "try_statement" for block in blocks}

    def start(self) -> Layout:
        """Return the layout at the file's start."""
        return Layout((), Phase.FIRST_OF_LINE)

    def after(self, state: object, lexeme: Lexeme, text: bytes, column: int) -> Layout | None:
        """Return the layout after a lexeme; None if the lexeme's column is invalid."""
        assert isinstance(state, Layout)  # noqa: S101  made by `start` or here
        symbol = lexeme.symbol
        if symbol in self._comments:
            return state
        if symbol == self._newline:
            return None if state.phase is Phase.AFTER_COLON else Layout(state.levels, Phase.FIRST_OF_LINE)
        if symbol == self._indent:
            return Layout(state.levels, Phase.FIRST_OF_BLOCK)
        if symbol == self._dedent:
            return Layout(state.levels[:-1], Phase.FIRST_OF_LINE)
        if state.phase <= Phase.AFTER_COLON:
            phase = Phase.AFTER_COLON if symbol == self._colon else Phase.INSIDE
            return state if phase is state.phase else Layout(state.levels, phase)
        return _begin_line(state, _column_of(text, lexeme.start, column))

    def between(self, state: object, terminals: Sequence[int]) -> tuple[bytes, object]:
        """Return the end of a line, with the indentation of the block that goes on or begins.

        Where all columns are those of tabs, tabs make them.
        """
        assert isinstance(state, Layout)  # noqa: S101  made by `start` or `after`
        levels = state.levels[: len(state.levels) - terminals.count(self._dedent)]
        column = levels[-1] if levels else 0
        tabs = 0 if any(each % _TAB_COLUMNS for each in levels) else column // _TAB_COLUMNS
        if self._indent in terminals:
            levels = (*levels, column + 1)
        elif self._newline not in terminals:
            return b"", state
        spaces = (levels[-1] if levels else 0) - tabs * _TAB_COLUMNS
        return b"\n" + b"\t" * tabs + b" " * spaces, replace(state, levels=levels)

    def before(self, state: object, pending: bytes) -> bytes:
        """Return a space, or on a line that is begun its indentation: that of a block after a colon."""
        assert isinstance(state, Layout)  # noqa: S101  made by `start` or `after`
        _, line_end, line = pending.rpartition(b"\n")
        if not line_end or line.strip():
            return b" "
        written = len(line.expandtabs(_TAB_COLUMNS))
        column = state.levels[-1] if state.levels else 0
        if state.phase is Phase.AFTER_COLON:
            column = max(column + 1, written)
        return b" " * (column - written)


def _begin_line(state: Layout, column: int) -> Layout | None:
    """Return the layout after a logical line's first lexeme; None if its column is invalid."""
    levels = state.levels
    if state.phase is Phase.FIRST_OF_BLOCK:
        inside = not levels or column > levels[-1]
        return Layout((*levels, column), Phase.INSIDE) if inside else None
    if not levels or (len(levels) == 1 and column < levels[0]):
        return Layout((column,), Phase.INSIDE)
    return Layout(levels, Phase.INSIDE) if column == levels[-1] else None


def _column_of(text: bytes, offset: int, first_column: int) -> int:
    """Return the column of `offset`, with tabs counted as in Python."""
    line_start = text.rfind(b"\n", 0, offset) + 1
    column = 0 if line_start else first_column
    for byte in text[line_start:offset]:
        if byte == 0x09:
            column = (column // _TAB_COLUMNS + 1) * _TAB_COLUMNS
        elif byte == 0x0C:
            column = 0
        else:
            column += 1
    return column
