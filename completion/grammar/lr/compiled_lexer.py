"""A lexer in machine code: its functions serve as the grammar's callbacks and call the grammar's functions.

A lexeme costs about 1 µs; a lexer with callbacks in Python needs 10 to 30 µs.
"""

from __future__ import annotations

import ctypes
import sys
import weakref

import numpy as np
import numpy.typing as npt

from completion.grammar.lr.lexer import NO_SYMBOL, SERIALIZATION_BYTES, Lexeme
from completion.grammar.lr.lexer_words import (
    BUFFER,
    CALLBACKS,
    DESERIALIZE,
    FIRST_COLUMN,
    KEYWORD_LEX,
    LENGTH,
    LEX,
    OUT_STATE_BYTES,
    OUT_SYMBOL,
    PAYLOAD,
    SCAN,
    SERIALIZE,
    TEXT,
    VALID,
    VALID_WIDTH,
    WORD,
    WORDS,
)
from completion.grammar.lr.tables import LexMode, Tables
from drafting.compiled import callback_in, kernel_in

_CODE = "completion.grammar.lr.lexer_code"
_lex, _next_letters = kernel_in(_CODE, "lex"), kernel_in(_CODE, "next_letters")
_CALLBACKS = [
    callback_in(_CODE, name) for name in ("advance", "mark_end", "get_column", "at_range_start", "eof", "log")
]


class CompiledLexer:
    """A `Lexer` whose inner loop is machine code."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        if sys.byteorder != "little":
            raise OSError(f"The compiled lexer needs a little-endian machine; this one is {sys.byteorder}-endian.")
        self._words: npt.NDArray[np.int64] = np.zeros(WORDS, dtype=np.int64)
        self._address = int(self._words.ctypes.data)
        self._lex = _lex.for_arguments_like(self._words, self._address, (0, 0), 0, 0)
        self._words[CALLBACKS] = [callback.address for callback in _CALLBACKS]
        self._buffer = ctypes.create_string_buffer(SERIALIZATION_BYTES)
        self._text = ctypes.c_char_p(b"")
        self.initial_state = b""
        self._set_functions(tables)

    def _set_functions(self, tables: Tables) -> None:
        w = self._words
        w[LEX], w[KEYWORD_LEX], w[WORD] = tables.lex_function, tables.keyword_function, tables.word_token
        w[BUFFER] = ctypes.addressof(self._buffer)
        scanner = tables.scanner
        if scanner is not None:
            create = ctypes.CFUNCTYPE(ctypes.c_void_p)(scanner.create) if scanner.create else None
            w[PAYLOAD] = (create() if create else 0) or 0
            if w[PAYLOAD] and scanner.destroy:
                destroy = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(scanner.destroy)
                weakref.finalize(self, destroy, int(w[PAYLOAD])).atexit = False
            w[SCAN], w[SERIALIZE], w[DESERIALIZE] = scanner.scan, scanner.serialize, scanner.deserialize
            w[VALID], w[VALID_WIDTH] = scanner.states, tables.external_token_count
            serialize = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.c_char_p)(scanner.serialize)
            self.initial_state = self._buffer.raw[: serialize(int(w[PAYLOAD]), self._buffer)]

    def load(self, text: bytes, column: int) -> None:
        """Set the text to read."""
        self._text = ctypes.c_char_p(text)  # keeps the bytes alive
        w = self._words
        w[TEXT] = ctypes.cast(self._text, ctypes.c_void_p).value or 0
        w[LENGTH], w[FIRST_COLUMN] = len(text), column

    def lex(self, mode: LexMode, offset: int, scanner_state: bytes) -> Lexeme:
        """Return the lexeme at `offset`."""
        if mode.external_state and scanner_state:
            ctypes.memmove(self._buffer, scanner_state, len(scanner_state))
        modes = mode.lex_state, mode.external_state
        kind = self._lex(self._words, self._address, modes, offset, len(scanner_state))
        out = self._words[OUT_SYMBOL : OUT_STATE_BYTES + 1].tolist()
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
        """Return the letters that can follow `start` in a keyword (see `Lexer`); unloads the text."""
        w = self._words
        if not w[KEYWORD_LEX]:
            return []
        text = np.frombuffer(start + b"?", dtype=np.uint8).copy()
        found = np.zeros((128, 3), dtype=np.int64)
        w[TEXT], w[LENGTH] = text.ctypes.data, len(text)
        count = _next_letters(w, self._address, text, found)
        self.load(b"", 0)
        return [(letter, keyword, bool(alive)) for letter, keyword, alive in found[:count].tolist()]
