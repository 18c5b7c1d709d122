"""What layout means for an insertion: terminals that the text after it brings, and how lines and blocks are written."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Protocol

from completion.grammar.indentation import IndentationRule, Layout
from completion.grammar.lr.acceptor import FreeLayout
from completion.grammar.lr.advance import LayoutRule
from completion.grammar.lr.tables import Tables

_TAB_COLUMNS = 8
_BLOCK_COST = 3  # of a block on lines of its own, which is for those that cannot stay on the line of their head
_BLOCKS = frozenset({"block", "_simple_statements", "_newline"})


class InsertedLayout(LayoutRule, Protocol):
    """A layout rule that also says how layout is inserted."""

    @property
    def costs(self) -> Mapping[int, int]:
        """Costs of the terminals that stand for layout in an insertion: 0 for those that the text after it brings."""

    @property
    def barred(self) -> Collection[tuple[int, int]]:
        """Pairs of terminals of which the second never follows the first, although the grammar lets it."""

    @property
    def unfinished(self) -> Collection[tuple[int, int]]:
        """Constructs that lack something after their last part (symbols of both), although the grammar takes them."""

    def between(self, state: object, terminals: Sequence[int]) -> tuple[bytes, object]:
        """Return the text of layout terminals within an insertion, and the state after them."""

    def before(self, state: object, pending: bytes) -> bytes:
        """Return what stands between the blanks at a text's end and an insertion without layout at its start."""


class FreeInsertions(FreeLayout):
    """The layout of languages whose layout the grammar describes completely."""

    costs: ClassVar[Mapping[int, int]] = {}
    barred: ClassVar[Collection[tuple[int, int]]] = ()
    unfinished: ClassVar[Collection[tuple[int, int]]] = ()

    def between(self, state: object, terminals: Sequence[int]) -> tuple[bytes, object]:  # noqa: ARG002
        """Return no text and the state unchanged."""
        return b"", state

    def before(self, state: object, pending: bytes) -> bytes:  # noqa: ARG002
        """Return a space."""
        return b" "


class IndentedInsertions(IndentationRule):
    """The layout of Python.

    Attributes:
        costs: The end of a line or block costs an insertion nothing, as the text after it mostly has it.
        barred: A block has at least one statement.
        unfinished: After the block of a `try` stands at least one handler.
    """

    def __init__(self, tables: Tables, symbol_count: int) -> None:
        super().__init__(tables)
        self.costs = {self._newline: 0, self._dedent: 0, self._indent: _BLOCK_COST}
        self.barred = {(self._colon, self._newline), (self._indent, self._dedent)}
        names = {each: tables.symbol_name(each) for each in range(symbol_count)}
        blocks = {each for each, name in names.items() if name in _BLOCKS}
        tries = {each for each, name in names.items() if name == "try_statement"}
        self.unfinished = {(each, block) for each in tries for block in blocks}

    def between(self, state: object, terminals: Sequence[int]) -> tuple[bytes, object]:
        """Return the end of a line, with the indentation of the block that goes on or begins.

        Where all columns are those of tabs, tabs make them.
        """
        assert isinstance(state, Layout)  # made by `start` or `after`
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
        assert isinstance(state, Layout)  # made by `start` or `after`
        if b"\n" not in pending or pending.strip():
            return b" "
        written = len(pending.rpartition(b"\n")[2].expandtabs(_TAB_COLUMNS))
        column = state.levels[-1] if state.levels else 0
        if state.after_colon:
            column = max(column + 1, written)
        return b" " * (column - written)
