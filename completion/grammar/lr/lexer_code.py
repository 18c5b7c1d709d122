"""The compiled lexer's functions, for numba: they call the grammar's functions, and some serve as its callbacks.

All state is in one array of words, the `TSLexer` structure first, so a callback finds all state by the address of its
argument. Importing this module imports numba; see `drafting.compiled`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from llvmlite import ir
from numba import carray, cfunc, types
from numba.extending import intrinsic

from completion.grammar.lr import lexer_words as at
from drafting.machine_code.functions import entry, inner

_words = types.CPointer(types.int64)
_entry = partial(entry, nogil=False)


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


@inner
def _decode_long(w: Any, first: int) -> tuple[int, int]:  # noqa: ANN401
    """Return a code point of two to four bytes and its length; the text is UTF-8."""
    length = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    code = first & (0x7F >> length)
    for i in range(1, length):
        code = (code << 6) | (_byte_at(w[at.TEXT] + w[at.POSITION] + i) & 0x3F)
    return code, length


@inner
def _look(w: Any) -> None:  # noqa: ANN401
    """Read the character at the position into `lookahead`."""
    code, size = 0, 0
    if w[at.POSITION] >= w[at.LENGTH]:
        w[at.TOUCHED] = 1
    else:
        code, size = _byte_at(w[at.TEXT] + w[at.POSITION]), 1
        if code >= 0x80:
            code, size = _decode_long(w, code)
    w[at.SIZE] = size
    w[at.HEAD] = (w[at.HEAD] & ~0xFFFFFFFF) | (code & 0xFFFFFFFF)


@cfunc(types.void(_words, types.uint8), cache=True)  # type: ignore[untyped-decorator]
def advance(lexer: Any, skip: int) -> None:  # noqa: ANN401
    """Go to the next character, which may be the first of the token."""
    w = carray(lexer, (at.WORDS,))
    w[at.POSITION] += w[at.SIZE]
    if skip & 1:
        w[at.TOKEN_START] = w[at.POSITION]
    _look(w)


@cfunc(types.void(_words), cache=True)  # type: ignore[untyped-decorator]
def mark_end(lexer: Any) -> None:  # noqa: ANN401
    """Note that a token may end here."""
    w = carray(lexer, (at.WORDS,))
    w[at.MARK] = w[at.POSITION]


@cfunc(types.uint32(_words), cache=True)  # type: ignore[untyped-decorator]
def get_column(lexer: Any) -> int:  # noqa: ANN401
    """Return the number of code points before the position in its line."""
    w = carray(lexer, (at.WORDS,))
    column, position = 0, w[at.POSITION] - 1
    while position >= 0:
        byte = _byte_at(w[at.TEXT] + position)
        if byte == 10:
            return column
        if byte >> 6 != 0b10:
            column += 1
        position -= 1
    return column + int(w[at.FIRST_COLUMN])


@cfunc(types.uint8(_words), cache=True)  # type: ignore[untyped-decorator]
def at_range_start(lexer: Any) -> int:  # noqa: ANN401, ARG001
    """Return that no included range starts here."""
    return 0


@cfunc(types.uint8(_words), cache=True)  # type: ignore[untyped-decorator]
def eof(lexer: Any) -> int:  # noqa: ANN401
    """Return whether the text ends here."""
    w = carray(lexer, (at.WORDS,))
    return 1 if w[at.POSITION] >= w[at.LENGTH] else 0


@cfunc(types.void(_words), cache=True)  # type: ignore[untyped-decorator]
def log(lexer: Any) -> None:  # noqa: ANN401
    """Do nothing."""


@inner
def _start(w: Any, offset: int) -> None:  # noqa: ANN401
    w[at.POSITION] = w[at.TOKEN_START] = offset
    w[at.MARK] = -1
    w[at.HEAD] = 0
    _look(w)


@inner
def _finish(w: Any) -> None:  # noqa: ANN401
    end = w[at.POSITION] if w[at.MARK] < 0 else w[at.MARK]
    w[at.OUT_END] = end
    w[at.OUT_START] = min(w[at.TOKEN_START], end)
    w[at.OUT_SYMBOL] = (w[at.HEAD] >> 32) & 0xFFFF


@inner
def _scan_external(w: Any, address: int, external_state: int, offset: int, state_bytes: int) -> bool:  # noqa: ANN401
    _call_deserialize(w[at.DESERIALIZE], w[at.PAYLOAD], w[at.BUFFER], state_bytes)
    _start(w, offset)
    valid = w[at.VALID] + w[at.VALID_WIDTH] * external_state
    if not _call_scan(w[at.SCAN], w[at.PAYLOAD], address, valid) & 0xFF:
        return False
    _finish(w)
    w[at.OUT_STATE_BYTES] = _call_serialize(w[at.SERIALIZE], w[at.PAYLOAD], w[at.BUFFER])
    return True


@_entry
def lex(w: Any, address: int, modes: tuple[int, int], offset: int, state_bytes: int) -> int:  # noqa: ANN401
    """Fill the OUT words; return 2 for an external token, 1 for a token of the generated lexer, 0 for none."""
    lex_state, external_state = modes
    w[at.TOUCHED] = w[at.OUT_SCANNER_TOUCHED] = w[at.OUT_KEYWORD] = 0
    if external_state and w[at.SCAN]:
        found = _scan_external(w, address, external_state, offset, state_bytes)
        w[at.OUT_SCANNER_TOUCHED] = w[at.TOUCHED]
        if found:
            w[at.OUT_TOUCHED] = w[at.TOUCHED]
            return 2
    _start(w, offset)
    found = _call_lex(w[at.LEX], address, lex_state) & 0xFF != 0
    w[at.OUT_TOUCHED] = w[at.TOUCHED] | w[at.OUT_SCANNER_TOUCHED]
    _finish(w)
    if not found:
        return 0
    symbol, start, end = w[at.OUT_SYMBOL], w[at.OUT_START], w[at.OUT_END]
    if symbol and symbol == w[at.WORD] and w[at.KEYWORD_LEX]:
        _start(w, start)
        if _call_lex(w[at.KEYWORD_LEX], address, 0) & 0xFF:
            _finish(w)
            if w[at.OUT_END] == end:
                w[at.OUT_KEYWORD] = w[at.OUT_SYMBOL]
        w[at.OUT_SYMBOL], w[at.OUT_START], w[at.OUT_END] = symbol, start, end
    return 1


@_entry
def next_letters(w: Any, address: int, text: Any, found: Any) -> int:  # noqa: ANN401
    """Try every letter as the last byte of `text`; write (letter, keyword, alive) to `found`; return the count."""
    count = 0
    for letter in range(33, 127):
        text[-1] = letter
        _start(w, 0)
        matched = _call_lex(w[at.KEYWORD_LEX], address, 0) & 0xFF != 0
        _finish(w)
        keyword = w[at.OUT_SYMBOL] if matched and w[at.OUT_END] == w[at.LENGTH] else 0
        alive = w[at.POSITION] >= w[at.LENGTH]
        if keyword or alive:
            found[count, 0], found[count, 1], found[count, 2] = letter, keyword, alive
            count += 1
    return int(count)
