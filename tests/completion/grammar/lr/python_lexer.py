"""The reference lexer: does the same as `completion.grammar.lr.lexer` with callbacks in Python."""

from __future__ import annotations

import ctypes

from completion.grammar.lr.lexer import NO_SYMBOL, SERIALIZATION_BYTES, Lexeme
from completion.grammar.lr.tables import LexMode, Tables

KEYWORD_LETTERS = bytes(range(33, 127))


def decode_utf8(text: bytes, position: int) -> tuple[int, int]:
    """Return the code point at `position` and its length in bytes."""
    first = text[position]
    length = 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    return ord(text[position : position + length].decode("utf-8")), length


class LexerStruct(ctypes.Structure):
    """`TSLexer`."""

    _fields_ = (
        ("lookahead", ctypes.c_int32),
        ("result_symbol", ctypes.c_uint16),
        ("advance", ctypes.c_void_p),
        ("mark_end", ctypes.c_void_p),
        ("get_column", ctypes.c_void_p),
        ("is_at_included_range_start", ctypes.c_void_p),
        ("eof", ctypes.c_void_p),
        ("log", ctypes.c_void_p),
    )


_Advance = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_bool)
_Plain = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Column = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)
_Test = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)
_Log = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
_Lex = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_uint16)
_Create = ctypes.CFUNCTYPE(ctypes.c_void_p)
_Scan = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_Serialize = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.c_char_p)
_Deserialize = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint32)


class PythonLexer:
    """The reference lexer; it takes about 0.5 µs per character."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._text = b""
        self._first_column = 0
        self._position = self._size = self._mark = self._token_start = 0
        self._touched = False
        self._struct = LexerStruct()
        self._callbacks = (
            _Advance(self._advance),
            _Plain(self._mark_end),
            _Column(self._get_column),
            _Test(lambda _: False),
            _Test(self._eof),
            _Log(lambda _lexer, _format: None),
        )
        for (name, _), callback in zip(LexerStruct._fields_[2:], self._callbacks, strict=True):
            setattr(self._struct, name, ctypes.cast(callback, ctypes.c_void_p).value)
        self._address = ctypes.addressof(self._struct)
        self._lex_function = _Lex(tables.lex_function)
        self._keyword_function = _Lex(tables.keyword_function) if tables.keyword_function else None
        self._buffer = ctypes.create_string_buffer(SERIALIZATION_BYTES)
        self.initial_state = b""
        if tables.scanner is not None:
            self._scan = _Scan(tables.scanner.scan)
            self._serialize = _Serialize(tables.scanner.serialize)
            self._deserialize = _Deserialize(tables.scanner.deserialize)
            self._payload = _Create(tables.scanner.create)() if tables.scanner.create else None
            self.initial_state = self._buffer.raw[: self._serialize(self._payload, self._buffer)]

    def load(self, text: bytes, column: int) -> None:
        """Set the text."""
        self._text, self._first_column = text, column

    def lex(self, mode: LexMode, offset: int, scanner_state: bytes) -> Lexeme:
        """Return the lexeme at `offset`, from the external scanner or else from the generated lexer."""
        self._touched = False
        if mode.external_state and self._tables.scanner is not None:
            found = self._lex_external(mode.external_state, offset, scanner_state)
            if found is not None:
                return found
        scanner_touched = self._touched
        self._start(offset)
        if not self._lex_function(self._address, mode.lex_state):
            ends = self._token_start, self._position
            return Lexeme(NO_SYMBOL, 0, *ends, self._touched or scanner_touched, scanner_state, scanner_touched)
        start, end = self._finish()
        symbol, keyword = self._struct.result_symbol, 0
        if symbol and symbol == self._tables.word_token and self._keyword_function is not None:
            keyword = self._find_keyword(start, end)
        return Lexeme(symbol, keyword, start, end, self._touched or scanner_touched, scanner_state, scanner_touched)

    def next_letters(self, start: bytes) -> list[tuple[int, int, bool]]:
        """Return the letters that can follow `start` in a keyword (see `Lexer`); loads another text."""
        found = []
        for letter in KEYWORD_LETTERS if self._keyword_function is not None else b"":
            self.load(start + bytes([letter]), 0)
            keyword = self._find_keyword(0, len(self._text))
            if keyword or self._position >= len(self._text):
                found.append((letter, keyword, self._position >= len(self._text)))
        return found

    def _lex_external(self, external_state: int, offset: int, scanner_state: bytes) -> Lexeme | None:
        scanner = self._tables.scanner
        assert scanner is not None
        self._deserialize(self._payload, scanner_state, len(scanner_state))
        self._start(offset)
        valid = scanner.states + self._tables.external_token_count * external_state
        if not self._scan(self._payload, self._address, valid):
            return None
        start, end = self._finish()
        length = self._serialize(self._payload, self._buffer)
        state = self._buffer.raw[:length]
        symbol = self._tables.external_symbols[self._struct.result_symbol]
        idle = end <= offset and state == scanner_state
        return Lexeme(symbol, 0, start, end, self._touched, state, self._touched, idle)

    def _find_keyword(self, start: int, end: int) -> int:
        assert self._keyword_function is not None
        touched = self._touched
        self._start(start)
        is_keyword = self._keyword_function(self._address, 0) and self._finish()[1] == end
        self._touched = touched
        return int(self._struct.result_symbol) if is_keyword else 0

    def _start(self, offset: int) -> None:
        self._position = self._token_start = offset
        self._mark = -1
        self._struct.result_symbol = 0
        self._look()

    def _finish(self) -> tuple[int, int]:
        end = self._position if self._mark < 0 else self._mark
        return min(self._token_start, end), end

    def _look(self) -> None:
        if self._position >= len(self._text):
            self._touched = True
            self._size, self._struct.lookahead = 0, 0
        else:
            self._struct.lookahead, self._size = decode_utf8(self._text, self._position)

    def _advance(self, _lexer: int, skip: bool) -> None:
        self._position += self._size
        if skip:
            self._token_start = self._position
        self._look()

    def _mark_end(self, _lexer: int) -> None:
        self._mark = self._position

    def _get_column(self, _lexer: int) -> int:
        line_start = self._text.rfind(b"\n", 0, self._position) + 1
        column = len(self._text[line_start : self._position].decode("utf-8", "replace"))
        return column if line_start else column + self._first_column

    def _eof(self, _lexer: int) -> bool:
        return self._position >= len(self._text)
