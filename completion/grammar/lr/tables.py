"""The parse table, lex modes and functions of a tree-sitter grammar, read from its compiled `TSLanguage` with ctypes.

Source: `tree_sitter/parser.h`, part of every grammar's source distribution (ABI 13, 14 and 15).
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from enum import IntEnum
from itertools import chain

import numpy as np
import numpy.typing as npt

from completion.errors import GrammarUnsupportedError

SUPPORTED_ABI = (13, 14, 15)
END_SYMBOL = 0
_NUMBER_BYTES = 16  # of a Python integer in a row, on average: numbers up to 256 and equal ones are shared
_ENTRY_BYTES = 300  # of a decoded entry with its actions
NO_LOOKAHEAD = 0xFFFF  # lex state of a parse state that ends a non-terminal extra and reduces without a lookahead


class _ExternalScanner(ctypes.Structure):
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
        ("external_scanner", _ExternalScanner),
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


@dataclass(frozen=True, slots=True)
class Action:
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


@dataclass(frozen=True, slots=True)
class LexMode:
    """The tokens that the lexer looks for; parse states with equal modes share one lexeme.

    Attributes:
        lex_state: Start state of the generated lexer.
        external_state: Row of valid external tokens; 0 if there are none.
        reserved_set: Set of words that are not identifiers in this state (ABI 15); 0 if there are none.
    """

    lex_state: int
    external_state: int
    reserved_set: int


@dataclass(frozen=True, slots=True)
class ScannerFunctions:
    """Addresses of the external scanner's functions and of its table of valid tokens."""

    states: int
    create: int
    destroy: int
    scan: int
    serialize: int
    deserialize: int


class Tables:
    """The parse table and lexer of one grammar; each small row is decoded at its first use."""

    def __init__(self, language_address: int) -> None:
        """Read the structure.

        Args:
            language_address: Address of a `TSLanguage`, which must stay alive (grammar packages hold it statically).

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
        self.scanner = self._read_scanner()
        self.external_symbols = [self._struct.external_scanner.symbol_map[i] for i in range(self.external_token_count)]
        self._large_rows, self._row_width = self._struct.parse_table, self.symbol_count
        self._large_states = int(self._struct.large_state_count)
        self._small_rows: dict[int, dict[int, int]] = {}
        self._entries: dict[int, tuple[Action, ...]] = {}
        self._reserved: dict[int, frozenset[int]] = {0: frozenset()}
        self._modes: dict[int, LexMode] = {}

    def _read_scanner(self) -> ScannerFunctions | None:
        scanner = self._struct.external_scanner
        if not self.external_token_count or not scanner.scan:
            return None
        return ScannerFunctions(
            int(scanner.states),
            int(scanner.create or 0),
            int(scanner.destroy or 0),
            int(scanner.scan),
            int(scanner.serialize),
            int(scanner.deserialize),
        )

    def actions(self, state: int, symbol: int) -> tuple[Action, ...]:
        """Return the parser's actions in `state` for terminal `symbol`; empty if the symbol cannot follow."""
        return self.entry(self._value(state, symbol))

    def entry(self, index: int) -> tuple[Action, ...]:
        """Return the actions of an entry of the parse table; empty for entry 0."""
        entry = self._entries.get(index)
        if entry is None:
            entry = self._entries[index] = self._decode_entry(index)
        return entry

    def cells(self) -> npt.NDArray[np.int64]:
        """Return each filled cell of the table: state, symbol, entry or next state.  # [3, cells]."""
        large = np.ctypeslib.as_array(self._large_rows, (self._large_states, self._row_width))
        states, symbols = large.nonzero()
        rows = [self._small_row(state) for state in range(self._large_states, self.state_count)]
        where = np.repeat(np.arange(self._large_states, self.state_count), [len(row) for row in rows])
        names, values = ([*chain.from_iterable(each)] for each in (rows, (row.values() for row in rows)))
        columns = (states, where), (symbols, names), (large[states, symbols], values)
        return np.array([np.concatenate(each) for each in columns], dtype=np.int64)

    def goto(self, state: int, symbol: int) -> int:
        """Return the state after a reduction to `symbol` on top of `state`; 0 if there is none."""
        return self._value(state, symbol)

    def lex_mode(self, state: int) -> LexMode:
        """Return the lexer mode of a parse state."""
        mode = self._modes.get(state)
        if mode is None:
            width = 3 if self.abi_version >= 15 else 2
            modes, start = self._struct.lex_modes, state * width
            mode = LexMode(modes[start], modes[start + 1], modes[start + 2] if width == 3 else 0)
            self._modes[state] = mode
        return mode

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
        """Approximate memory of the decoded rows and entries."""
        rows = sum(sys.getsizeof(row) + _NUMBER_BYTES * len(row) for row in list(self._small_rows.values()))
        return rows + _ENTRY_BYTES * len(self._entries)

    def _value(self, state: int, symbol: int) -> int:
        """Return the number in the parse table, 0 for none. A large row is read where it is, a small one is decoded."""
        if state < self._large_states:
            inside = 0 <= symbol < self._row_width
            return int(self._large_rows[state * self._row_width + symbol]) if inside else 0
        row = self._small_rows.get(state)
        if row is None:
            row = self._small_rows[state] = self._small_row(state)
        return row.get(symbol, 0)

    def _small_row(self, state: int) -> dict[int, int]:
        """Decode a small row: a count of groups, each a value, a count of symbols, and the symbols."""
        table = self._struct.small_parse_table
        position = self._struct.small_parse_table_map[state - self._large_states]
        groups = table[position]
        position += 1
        row: dict[int, int] = {}
        for _ in range(groups):
            value, count = table[position], table[position + 1]
            row.update(dict.fromkeys(table[position + 2 : position + 2 + count], value))
            position += 2 + count
        return row

    def _decode_entry(self, index: int) -> tuple[Action, ...]:
        if index == 0:
            return ()
        data = bytes(self._struct.parse_actions[8 * index : 8 * index + 8])
        count = data[0]
        raw = bytes(self._struct.parse_actions[8 * (index + 1) : 8 * (index + 1 + count)])
        return tuple(_decode_action(raw[8 * i : 8 * i + 8]) for i in range(count))


def _decode_action(raw: bytes) -> Action:
    """Decode a `TSParseAction`, a union of eight bytes."""
    kind = ActionKind(raw[0])
    word = int.from_bytes(raw[2:4], "little")
    if kind is ActionKind.SHIFT:
        return Action(kind, state=word, extra=bool(raw[4]), repetition=bool(raw[5]))
    if kind is ActionKind.REDUCE:
        return Action(kind, symbol=word, child_count=raw[1])
    return Action(kind)
