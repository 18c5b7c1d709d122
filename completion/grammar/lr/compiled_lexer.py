"""A lexer in machine code: numba functions serve as the grammar's callbacks and call the grammar's functions.

A lexeme costs about 1 µs; a lexer with callbacks in Python needs 10 to 30 µs. All state is in one array of 64-bit
words. Its first eight words are the `TSLexer` structure, so a callback finds all state by the address of its argument.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import carray, cfunc, njit, types
from numba.extending import intrinsic

from completion.grammar.lr.lexer import NO_SYMBOL, SERIALIZATION_BYTES, Lexeme
from completion.grammar.lr.tables import LexMode, Tables

# Words of the state array. 0 holds lookahead (low half) and result symbol; 1 to 6 are the six callbacks.
HEAD, CALLBACKS = 0, slice(1, 7)
TEXT, LENGTH, POSITION, SIZE, MARK, TOKEN_START, TOUCHED, FIRST_COLUMN = 8, 9, 10, 11, 12, 13, 14, 15
LEX, KEYWORD_LEX, WORD, SCAN, SERIALIZE, DESERIALIZE, PAYLOAD, VALID, VALID_WIDTH, BUFFER = range(16, 26)
OUT_SYMBOL, OUT_KEYWORD, OUT_START, OUT_END, OUT_TOUCHED, OUT_SCANNER_TOUCHED, OUT_STATE_BYTES = range(26, 33)
WORDS = 40

_words = types.CPointer(types.int64)


def _pointer_call(result: Any, *arguments: Any) -> Any:  # noqa: ANN401  numba's and llvmlite's types
    """Return an intrinsic that calls the C function at an address; all values are passed as 64-bit integers."""

    @intrinsic  # type: ignore[untyped-decorator]
    def call(typing_context: Any, address: Any, *values: Any) -> Any:  # noqa: ANN401, ARG001
        def generate(_context: Any, builder: Any, _signature: Any, operands: Any) -> Any:  # noqa: ANN401
            word = ir.IntType(64)
            function_type = ir.FunctionType(result, arguments)
            function = builder.inttoptr(operands[0], function_type.as_pointer())
            unpacked = [builder.extract_value(operands[1], i) for i in range(len(arguments))]
            converted = [
                builder.inttoptr(value, kind) if isinstance(kind, ir.PointerType) else builder.trunc(value, kind)
                for value, kind in zip(unpacked, arguments, strict=True)
            ]
            returned = builder.call(function, converted)
            if isinstance(result, ir.VoidType):
                return ir.Constant(word, 0)
            return builder.zext(returned, word)

        return types.int64(types.int64, types.StarArgTuple((types.int64,) * len(arguments))), generate

    return call


_BYTE, _INT = ir.IntType(8), ir.IntType(32)
_ADDRESS = _BYTE.as_pointer()
_call_lex = _pointer_call(_BYTE, _ADDRESS, _INT)
_call_scan = _pointer_call(_BYTE, _ADDRESS, _ADDRESS, _ADDRESS)
_call_serialize = _pointer_call(_INT, _ADDRESS, _ADDRESS)
_call_deserialize = _pointer_call(ir.VoidType(), _ADDRESS, _ADDRESS, _INT)


@intrinsic  # type: ignore[untyped-decorator]
def _byte_at(_typing_context: Any, _address: Any) -> Any:  # noqa: ANN401
    """Return the byte at an address."""

    def generate(_context: Any, builder: Any, _signature: Any, operands: Any) -> Any:  # noqa: ANN401
        return builder.zext(builder.load(builder.inttoptr(operands[0], _ADDRESS)), ir.IntType(64))

    return types.int64(types.int64), generate


@njit(inline="always")  # type: ignore[untyped-decorator]
def _continuation(w: Any, position: int) -> int:  # noqa: ANN401
    """Return the six payload bits of a UTF-8 continuation byte; −1 for any other byte."""
    if position >= w[LENGTH]:
        return -1
    byte = _byte_at(w[TEXT] + position)
    return byte & 0x3F if byte >> 6 == 0b10 else -1


@njit  # type: ignore[untyped-decorator]
def _decode_long(w: Any, first: int) -> tuple[int, int]:  # noqa: ANN401
    """Return a code point of two to four bytes and its length; (−1, 1) for bytes that are not UTF-8."""
    position = w[POSITION]
    length = 2 if first >> 5 == 0b110 else 3 if first >> 4 == 0b1110 else 4 if first >> 3 == 0b11110 else 1
    if length == 1:
        return -1, 1
    code = first & (0x7F >> length)
    for i in range(1, length):
        bits = _continuation(w, position + i)
        if bits < 0:
            return -1, 1
        code = (code << 6) | bits
    shortest = 0x80 if length == 2 else 0x800 if length == 3 else 0x10000
    if code < shortest or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        return -1, 1
    return code, length


@njit  # type: ignore[untyped-decorator]
def _look(w: Any) -> None:  # noqa: ANN401
    """Read the character at the position into `lookahead`."""
    code, size = 0, 0
    if w[POSITION] >= w[LENGTH]:
        w[TOUCHED] = 1
    else:
        code, size = _byte_at(w[TEXT] + w[POSITION]), 1
        if code >= 0x80:
            code, size = _decode_long(w, code)
    w[SIZE] = size
    w[HEAD] = (w[HEAD] & ~0xFFFFFFFF) | (code & 0xFFFFFFFF)


@cfunc(types.void(_words, types.uint8), cache=True)  # type: ignore[untyped-decorator]
def _advance(lexer: Any, skip: int) -> None:  # noqa: ANN401
    w = carray(lexer, (WORDS,))
    w[POSITION] += w[SIZE]
    if skip & 1:
        w[TOKEN_START] = w[POSITION]
    _look(w)


@cfunc(types.void(_words), cache=True)  # type: ignore[untyped-decorator]
def _mark_end(lexer: Any) -> None:  # noqa: ANN401
    w = carray(lexer, (WORDS,))
    w[MARK] = w[POSITION]


@cfunc(types.uint32(_words), cache=True)  # type: ignore[untyped-decorator]
def _get_column(lexer: Any) -> int:  # noqa: ANN401
    w = carray(lexer, (WORDS,))
    column, position = 0, w[POSITION] - 1
    while position >= 0:
        byte = _byte_at(w[TEXT] + position)
        if byte == 10:
            return column
        if byte >> 6 != 0b10:
            column += 1
        position -= 1
    return column + int(w[FIRST_COLUMN])


@cfunc(types.uint8(_words), cache=True)  # type: ignore[untyped-decorator]
def _at_range_start(lexer: Any) -> int:  # noqa: ANN401, ARG001
    return 0


@cfunc(types.uint8(_words), cache=True)  # type: ignore[untyped-decorator]
def _eof(lexer: Any) -> int:  # noqa: ANN401
    w = carray(lexer, (WORDS,))
    return 1 if w[POSITION] >= w[LENGTH] else 0


@cfunc(types.void(_words), cache=True)  # type: ignore[untyped-decorator]
def _log(lexer: Any) -> None:  # noqa: ANN401, ARG001
    return


@njit  # type: ignore[untyped-decorator]
def _start(w: Any, offset: int) -> None:  # noqa: ANN401
    w[POSITION] = w[TOKEN_START] = offset
    w[MARK] = -1
    w[HEAD] = 0
    _look(w)


@njit  # type: ignore[untyped-decorator]
def _finish(w: Any) -> None:  # noqa: ANN401
    end = w[POSITION] if w[MARK] < 0 else w[MARK]
    w[OUT_END] = end
    w[OUT_START] = min(w[TOKEN_START], end)
    w[OUT_SYMBOL] = (w[HEAD] >> 32) & 0xFFFF


@njit(cache=True)  # type: ignore[untyped-decorator]
def _scan_external(w: Any, address: int, external_state: int, offset: int, state_bytes: int) -> bool:  # noqa: ANN401
    _call_deserialize(w[DESERIALIZE], w[PAYLOAD], w[BUFFER], state_bytes)
    _start(w, offset)
    valid = w[VALID] + w[VALID_WIDTH] * external_state
    if not _call_scan(w[SCAN], w[PAYLOAD], address, valid) & 0xFF:
        return False
    _finish(w)
    w[OUT_STATE_BYTES] = _call_serialize(w[SERIALIZE], w[PAYLOAD], w[BUFFER])
    return True


@njit(cache=True)  # type: ignore[untyped-decorator]
def _lex(w: Any, address: int, modes: tuple[int, int], offset: int, state_bytes: int) -> int:  # noqa: ANN401
    """Fill the OUT words; return 2 for an external token, 1 for a token of the generated lexer, 0 for none."""
    lex_state, external_state = modes
    w[TOUCHED] = w[OUT_SCANNER_TOUCHED] = w[OUT_KEYWORD] = 0
    if external_state and w[SCAN]:
        found = _scan_external(w, address, external_state, offset, state_bytes)
        w[OUT_SCANNER_TOUCHED] = w[TOUCHED]
        if found:
            w[OUT_TOUCHED] = w[TOUCHED]
            return 2
    _start(w, offset)
    found = _call_lex(w[LEX], address, lex_state) & 0xFF != 0
    w[OUT_TOUCHED] = w[TOUCHED] | w[OUT_SCANNER_TOUCHED]
    _finish(w)
    if not found:
        return 0
    symbol, start, end = w[OUT_SYMBOL], w[OUT_START], w[OUT_END]
    if symbol and symbol == w[WORD] and w[KEYWORD_LEX]:
        _start(w, start)
        if _call_lex(w[KEYWORD_LEX], address, 0) & 0xFF:
            _finish(w)
            if w[OUT_END] == end:
                w[OUT_KEYWORD] = w[OUT_SYMBOL]
        w[OUT_SYMBOL], w[OUT_START], w[OUT_END] = symbol, start, end
    return 1


@njit(cache=True)  # type: ignore[untyped-decorator]
def _next_letters(w: Any, address: int, text: Any, found: Any) -> int:  # noqa: ANN401
    """Try every letter as the last byte of `text`; write (letter, keyword, alive) to `found`; return the count."""
    count = 0
    for letter in range(33, 127):
        text[-1] = letter
        _start(w, 0)
        matched = _call_lex(w[KEYWORD_LEX], address, 0) & 0xFF != 0
        _finish(w)
        keyword = w[OUT_SYMBOL] if matched and w[OUT_END] == w[LENGTH] else 0
        alive = w[POSITION] >= w[LENGTH]
        if keyword or alive:
            found[count, 0], found[count, 1], found[count, 2] = letter, keyword, alive
            count += 1
    return int(count)


class CompiledLexer:
    """A `Lexer` whose inner loop is machine code."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        if sys.byteorder != "little":
            raise OSError(f"The compiled lexer needs a little-endian machine; this one is {sys.byteorder}-endian.")
        self._words: npt.NDArray[np.int64] = np.zeros(WORDS, dtype=np.int64)
        self._address = int(self._words.ctypes.data)
        callbacks = (_advance, _mark_end, _get_column, _at_range_start, _eof, _log)
        self._words[CALLBACKS] = [callback.address for callback in callbacks]
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
        kind = _lex(self._words, self._address, modes, offset, len(scanner_state))
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
