"""The parse table, lex modes and functions of a tree-sitter grammar, read from its compiled `TSLanguage` with ctypes.

Source: `tree_sitter/parser.h`, part of every grammar's source distribution (ABI 13, 14 and 15).
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterator
from enum import IntEnum
from struct import iter_unpack
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from completion.errors import GrammarUnsupportedError

SUPPORTED_ABI = (13, 14, 15)
END_SYMBOL = 0
_ENTRY_BYTES = 235  # of a decoded entry with its actions
_ROW_BYTES = 80  # of a row without its cells
NO_LOOKAHEAD = 0xFFFF  # lex state of a parse state that ends a non-terminal extra and reduces without a lookahead

Numbers = npt.NDArray[np.integer[Any]]


class ExternalScanner(ctypes.Structure):
    """Addresses of the external scanner's functions, None for none, and of its table of valid tokens."""

    _fields_ = (
        ("states", ctypes.c_void_p),
        ("symbol_map", ctypes.POINTER(ctypes.c_uint16)),
        ("create", ctypes.c_void_p),
        ("destroy", ctypes.c_void_p),
        ("scan", ctypes.c_void_p),
        ("serialize", ctypes.c_void_p),
        ("deserialize", ctypes.c_void_p),
    )


class _LanguageStruct(ctypes.Structure):
    """`TSLanguage`: ABI 13 ends before `primary_state_ids`, ABI 14 after it; ABI 15 has all fields."""

    _fields_ = (
        ("abi_version", ctypes.c_uint32),
        ("symbol_count", ctypes.c_uint32),
        ("alias_count", ctypes.c_uint32),
        ("token_count", ctypes.c_uint32),
        ("external_token_count", ctypes.c_uint32),
        ("state_count", ctypes.c_uint32),
        ("large_state_count", ctypes.c_uint32),
        ("production_id_count", ctypes.c_uint32),
        ("field_count", ctypes.c_uint32),
        ("max_alias_sequence_length", ctypes.c_uint16),
        ("parse_table", ctypes.POINTER(ctypes.c_uint16)),
        ("small_parse_table", ctypes.POINTER(ctypes.c_uint16)),
        ("small_parse_table_map", ctypes.POINTER(ctypes.c_uint32)),
        ("parse_actions", ctypes.POINTER(ctypes.c_uint8)),
        ("symbol_names", ctypes.POINTER(ctypes.c_char_p)),
        ("field_names", ctypes.c_void_p),
        ("field_map_slices", ctypes.c_void_p),
        ("field_map_entries", ctypes.c_void_p),
        ("symbol_metadata", ctypes.POINTER(ctypes.c_uint8)),
        ("public_symbol_map", ctypes.c_void_p),
        ("alias_map", ctypes.c_void_p),
        ("alias_sequences", ctypes.c_void_p),
        ("lex_modes", ctypes.POINTER(ctypes.c_uint16)),
        ("lex_fn", ctypes.c_void_p),
        ("keyword_lex_fn", ctypes.c_void_p),
        ("keyword_capture_token", ctypes.c_uint16),
        ("external_scanner", ExternalScanner),
        ("primary_state_ids", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("reserved_words", ctypes.POINTER(ctypes.c_uint16)),
        ("max_reserved_word_set_size", ctypes.c_uint16),
    )


class ActionKind(IntEnum):
    """The kind of a parser action."""

    SHIFT = 0
    REDUCE = 1
    ACCEPT = 2
    RECOVER = 3


class Action(NamedTuple):
    """One entry of the parse table.

    Attributes:
        state: State after a shift.
        extra: Whether a shift leaves the state unchanged (comments, whitespace).
        repetition: Whether only incremental parsing uses a shift; the acceptor ignores such shifts.
        symbol: Non-terminal that a reduction produces.
        child_count: Number of entries that a reduction pops.
    """

    kind: ActionKind
    state: int = 0
    extra: bool = False
    repetition: bool = False
    symbol: int = 0
    child_count: int = 0


class LexMode(NamedTuple):
    """The tokens that the lexer looks for; parse states with equal modes share one lexeme.

    Attributes:
        lex_state: Start state of the generated lexer.
        external_state: Row of valid external tokens; 0 if there are none.
        reserved_set: Set of words that are not identifiers in this state (ABI 15); 0 if there are none.
    """

    lex_state: int
    external_state: int
    reserved_set: int = 0


class Tables:
    """The parse table and lexer of one grammar.

    Attributes:
        scanner: The external scanner; None if the grammar has none.
    """

    def __init__(self, language_address: int) -> None:
        """Read the `TSLanguage` at an address, which must stay alive (grammar packages hold it statically).

        Raises:
            GrammarUnsupportedError: The ABI version is not one of `SUPPORTED_ABI`.
        """
        self._struct = _LanguageStruct.from_address(language_address)
        self.abi_version = int(self._struct.abi_version)
        if self.abi_version not in SUPPORTED_ABI:
            raise GrammarUnsupportedError(
                f"The grammar has ABI version {self.abi_version}; supported are versions {SUPPORTED_ABI}. "
                "Install another version of the grammar's package."
            )
        self.symbol_count = int(self._struct.symbol_count)
        self.token_count = int(self._struct.token_count)
        self.state_count = int(self._struct.state_count)
        self.word_token = int(self._struct.keyword_capture_token)
        self.lex_function = int(self._struct.lex_fn)
        self.keyword_function = int(self._struct.keyword_lex_fn or 0)
        self.external_token_count = int(self._struct.external_token_count)
        external = self._struct.external_scanner
        self.scanner = external if self.external_token_count and external.scan else None
        self.external_symbols = external.symbol_map[: self.external_token_count]
        self._rows: list[array[int] | None] = [None] * self.state_count
        self._entries: dict[int, tuple[Action, ...]] = {}
        self._reserved: dict[int, frozenset[int]] = {0: frozenset()}
        self._modes = self._lex_modes()

    def _lex_modes(self) -> list[LexMode]:
        """Return the lexer mode of each state; equal ones are one object."""
        width = 3 if self.abi_version >= 15 else 2
        known: dict[tuple[int, ...], LexMode] = {}
        modes = zip(*[iter(self._struct.lex_modes[: width * self.state_count])] * width, strict=True)
        return [known.setdefault(mode, LexMode(*mode)) for mode in modes]

    def actions(self, state: int, symbol: int) -> tuple[Action, ...]:
        """Return the parser's actions in `state` for terminal `symbol`; empty if the symbol cannot follow."""
        index = (self._rows[state] or self._row(state))[symbol]
        entry = self._entries.get(index)
        if entry is None:
            entry = self._entries[index] = self._decode_entry(index)
        return entry

    def cells(self) -> Numbers:
        """Return state, symbol and value of each filled cell, in no order.  # [3, cells].

        The value is an entry for a terminal, the next state for another symbol.
        """
        large = int(self._struct.large_state_count)
        whole = np.ctypeslib.as_array(self._struct.parse_table, (large, self.symbol_count))
        source, symbol = (each.astype(np.uint16) for each in whole.nonzero())
        return np.concatenate([(source, symbol, whole[source, symbol]), *self._sparse_cells(large)], axis=1)

    def _sparse_cells(self, first: int) -> Iterator[tuple[Numbers, Numbers, Numbers]]:
        """Yield state, symbol and value of filled cells of the states from the first one on, as `_row` reads them.

        The groups at the same place of all rows are read together.
        """
        if first == self.state_count:
            return
        at: Numbers = np.ctypeslib.as_array(self._struct.small_parse_table_map, (self.state_count - first,))
        data = np.ctypeslib.as_array(self._struct.small_parse_table, (int(at.max()) + 3 * self.symbol_count + 1,))
        state: Numbers = np.arange(first, self.state_count, dtype=np.uint16)
        left: Numbers = data[at].astype(np.int64)
        at = at.astype(np.int64) + 1
        while left.any():
            state, left, at = (each[left > 0] for each in (state, left, at))
            count = data[at + 1].astype(np.int64)
            yield np.repeat(state, count), data[spread(at + 2, count)], np.repeat(data[at], count)
            left, at = left - 1, at + 2 + count

    def _row(self, state: int) -> array[int]:
        """Return a state's row of the parse table, 0 in cells without a value. It is made when it is first needed.

        The structure has rows of many filled cells as they are. A row of few has a count of groups, each a value, a
        count of symbols, and the symbols.
        """
        large, width = int(self._struct.large_state_count), self.symbol_count
        if state < large:
            row = array("H", self._struct.parse_table[state * width : (state + 1) * width])
        else:
            row, data = array("H", bytes(2 * width)), self._struct.small_parse_table
            at = self._struct.small_parse_table_map[state - large] + 1
            for _ in range(data[at - 1]):
                value, end = data[at], at + 2 + data[at + 1]
                for symbol in data[at + 2 : end]:
                    row[symbol] = value
                at = end
        self._rows[state] = row
        return row

    def nth_actions(self, last: int, number: int) -> Numbers:
        """Return one action, by its number from 0, of each entry up to the last; its kind is -1 where there are fewer.

        Returns:
            Kind, child count, symbol or state, and whether it is a shift that goes to no state.  # [4, entries].
        """
        rows = last + 1 + self._struct.parse_actions[8 * last]
        raw = np.ctypeslib.as_array(self._struct.parse_actions, (8 * rows,)).reshape(-1, 8)
        row = raw[np.minimum(np.arange(last + 1) + number + 1, rows - 1)].astype(np.int32)
        kind = np.where(raw[: last + 1, 0] > number, row[:, 0], -1)
        return np.array([kind, row[:, 1], row[:, 2] | row[:, 3] << 8, row[:, 4] | row[:, 5]])

    def goto(self, state: int, symbol: int) -> int:
        """Return the state after a reduction to `symbol` on top of `state`; 0 if there is none."""
        return (self._rows[state] or self._row(state))[symbol]

    def lex_mode(self, state: int) -> LexMode:
        """Return the lexer mode of a parse state."""
        return self._modes[state]

    def is_reserved(self, state: int, symbol: int) -> bool:
        """Return whether a keyword is not an identifier in `state` (ABI 15)."""
        number = self.lex_mode(state).reserved_set
        words = self._reserved.get(number)
        if words is None:
            size = int(self._struct.max_reserved_word_set_size)
            listed = self._struct.reserved_words[number * size : (number + 1) * size]
            words = self._reserved[number] = frozenset(listed) - {0}
        return symbol in words

    def symbol_name(self, symbol: int) -> str:
        """Return the symbol's name; for an anonymous token its spelling."""
        name: bytes = self._struct.symbol_names[symbol]
        return name.decode()

    def literal(self, symbol: int) -> bytes:
        """Return the spelling of an anonymous token ("for", "=="); b"" for a token that is a pattern."""
        visible, named = self._struct.symbol_metadata[3 * symbol], self._struct.symbol_metadata[3 * symbol + 1]
        if not visible or named or symbol in self.external_symbols:
            return b""
        name: bytes = self._struct.symbol_names[symbol]
        return name

    @property
    def size_bytes(self) -> int:
        """Memory of the rows in use, and approximately of the decoded entries."""
        rows = self.state_count - self._rows.count(None)
        return 8 * self.state_count + (2 * self.symbol_count + _ROW_BYTES) * rows + _ENTRY_BYTES * len(self._entries)

    def _decode_entry(self, index: int) -> tuple[Action, ...]:
        raw = self._struct.parse_actions
        after = 8 * (index + 1 + raw[8 * index])
        return tuple(_action(*each) for each in iter_unpack("<BBHBB2x", bytes(raw[8 * (index + 1) : after])))


def _action(kind: int, child_count: int, result: int, extra: int, repetition: int) -> Action:
    """Return an action by its part of a `TSParseAction`, a union of eight bytes."""
    if kind == ActionKind.SHIFT:
        return Action(ActionKind.SHIFT, state=result, extra=bool(extra), repetition=bool(repetition))
    return Action(ActionKind(kind), symbol=result, child_count=child_count)


def spread(starts: Numbers, counts: Numbers) -> Numbers:
    """Return the numbers from each start on, as many as its count, one start after the other."""
    ends = np.cumsum(counts)
    found = np.repeat((starts - ends + counts).astype(np.int32), counts)
    found += np.arange(len(found), dtype=np.int32)
    return found
