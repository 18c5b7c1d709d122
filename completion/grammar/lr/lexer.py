"""A grammar's lexer, and the lexemes that it returns.

The grammar's lexer function and external scanner read through the callbacks of a `TSLexer` (source:
`tree_sitter/parser.h`), which are machine code: a lexeme costs about 1 µs, with callbacks in Python 10 to 30 µs. The
lexer also reports whether it looked at the end of the text: such a lexeme can change when text is appended.
"""

from __future__ import annotations

import ctypes
import sys
import weakref
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from completion.grammar.lr import lexer_words as at
from completion.grammar.lr.tables import LexMode, Tables
from drafting.compiled import callback_in, kernel_in

SERIALIZATION_BYTES = 1024  # TREE_SITTER_SERIALIZATION_BUFFER_SIZE
NO_SYMBOL = -1
_CODE = "completion.grammar.lr.lexer_code"
_lex, _next_letters = kernel_in(_CODE, "lex"), kernel_in(_CODE, "next_letters")
_CALLBACKS = [
    callback_in(_CODE, name) for name in ("advance", "mark_end", "get_column", "at_range_start", "eof", "log")
]


class Lexeme(NamedTuple):
    """The lexeme at an offset.

    Attributes:
        symbol: Terminal symbol; `NO_SYMBOL` if nothing matched.
        keyword: Keyword symbol of a word that is also a keyword; 0 otherwise.
        start: Offset of its first byte, after skipped whitespace.
        end: Offset after its last byte.
        touched_end: Whether the lexer looked at the end of the text.
        scanner_state: Serialised state of the external scanner after the lexeme.
        scanner_touched: Whether the external scanner looked at the end of the text; the lexeme is then undecided.
        idle: Whether it is an empty external token that left the scanner's state unchanged.
    """

    symbol: int
    keyword: int
    start: int
    end: int
    touched_end: bool
    scanner_state: bytes
    scanner_touched: bool = False
    idle: bool = False


class Lexer:
    """Finds lexemes in a loaded text.

    Attributes:
        initial_state: Serialised state of a new scanner. Restoring an empty state instead can keep parts of the
            last scan (the Python scanner's "inside an interpolated string").
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        if sys.byteorder != "little":
            raise OSError(f"The compiled lexer needs a little-endian machine; this one is {sys.byteorder}-endian.")
        self._words: npt.NDArray[np.int64] = np.zeros(at.WORDS, dtype=np.int64)
        self._address = int(self._words.ctypes.data)
        self._lex = _lex.for_arguments_like(self._words, self._address, (0, 0), 0, 0)
        self._words[at.CALLBACKS] = [callback.address for callback in _CALLBACKS]
        self._buffer = ctypes.create_string_buffer(SERIALIZATION_BYTES)
        self._text = ctypes.c_char_p(b"")
        self.initial_state = b""
        self._set_functions(tables)

    def _set_functions(self, tables: Tables) -> None:
        w = self._words
        w[at.LEX], w[at.KEYWORD_LEX], w[at.WORD] = tables.lex_function, tables.keyword_function, tables.word_token
        w[at.BUFFER] = ctypes.addressof(self._buffer)
        scanner = tables.scanner
        if scanner is not None:
            create = ctypes.CFUNCTYPE(ctypes.c_void_p)(scanner.create) if scanner.create else None
            w[at.PAYLOAD] = (create() if create else 0) or 0
            if w[at.PAYLOAD] and scanner.destroy:
                destroy = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(scanner.destroy)
                weakref.finalize(self, destroy, int(w[at.PAYLOAD])).atexit = False
            w[at.SCAN], w[at.SERIALIZE], w[at.DESERIALIZE] = scanner.scan, scanner.serialize, scanner.deserialize
            w[at.VALID], w[at.VALID_WIDTH] = scanner.states, tables.external_token_count
            serialize = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.c_char_p)(scanner.serialize)
            self.initial_state = self._buffer.raw[: serialize(int(w[at.PAYLOAD]), self._buffer)]

    def load(self, text: bytes, column: int) -> None:
        """Set the text: UTF-8 that does not end inside a character, and begins in a column, in code points."""
        self._text = ctypes.c_char_p(text)  # keeps the bytes alive
        w = self._words
        w[at.TEXT] = ctypes.cast(self._text, ctypes.c_void_p).value or 0
        w[at.LENGTH], w[at.FIRST_COLUMN] = len(text), column

    def lex(self, mode: LexMode, offset: int, scanner_state: bytes) -> Lexeme:
        """Return the lexeme at `offset` of the loaded text."""
        if mode.external_state and scanner_state:
            ctypes.memmove(self._buffer, scanner_state, len(scanner_state))
        modes = mode.lex_state, mode.external_state
        kind = self._lex(self._words, self._address, modes, offset, len(scanner_state))
        out = self._words[at.OUT_SYMBOL : at.OUT_STATE_BYTES + 1].tolist()
        symbol, keyword, start, end, touched, scanner_touched, state_bytes = out
        if kind == 2:
            state = self._buffer.raw[:state_bytes] if state_bytes else b""
            symbol = self._tables.external_symbols[symbol]
            idle = end <= offset and state == scanner_state
            return Lexeme(symbol, 0, start, end, bool(touched), state, bool(scanner_touched), idle)
        if kind == 0:
            symbol = NO_SYMBOL
        return Lexeme(symbol, keyword, start, end, bool(touched), scanner_state, bool(scanner_touched))

    def next_letters(self, start: bytes) -> list[tuple[int, int, bool]]:
        """Return the letters that can follow `start` in a keyword; unloads the text.

        Returns:
            For each letter: the letter, the keyword that it completes (0 if none), and whether a longer keyword
            exists.
        """
        w = self._words
        if not w[at.KEYWORD_LEX]:
            return []
        text = np.frombuffer(start + b"?", dtype=np.uint8).copy()
        found = np.zeros((128, 3), dtype=np.int64)
        w[at.TEXT], w[at.LENGTH] = text.ctypes.data, len(text)
        count = _next_letters(w, self._address, text, found)
        self.load(b"", 0)
        return [(letter, keyword, bool(alive)) for letter, keyword, alive in found[:count].tolist()]
