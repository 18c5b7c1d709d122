"""Products of int8 rows with weights in the blocks of llama.cpp; see `block_kinds` for their layout.

Values are widened to bytes in registers, once for all rows of a tile. Sums over a block are exact integers:
y[c] += x_scale · (Σ_blocks scale[c] · Σ x · value[c]). Every float sum has a fixed order, so a row's result never
depends on its batch.

A row is a sequence of lines, one for each 32 columns: 32 int8 and the numbers that the block's product needs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils

from completion.model.int8.kernels.block_kinds import COLUMNS, KINDS, PIECES, STEPS, STRIP, BlockKind, Piece
from completion.model.int8.kernels.processor import NARROW_VNNI, WIDE_VNNI
from completion.model.int8.kernels.vector import BYTE, FLOAT, INT, LONG, call, operation, pointer, splat

LINE_BYTES = 64
"""Bytes of a line: 32 int8, and eight words at the offsets below."""
SCALE, MINUS_SUM = 32, 36
"""float32: the scale of the line's int8, and −Σ x."""
MINUS_SUM_BY_OFFSET = {16: 40, 128: 44, 32: 48}
"""int32 for each offset of a kind: −offset · Σ x; for 32 the sums of both halves of the line."""
ROWS = 32
"""Maximum number of rows that share the widening; their lines of all columns and sums fit the second-level cache."""
_AHEAD = 2048
"""Bytes from the weights that are multiplied to those that are prefetched; 1024 to 4096 were alike."""

_WIDTH = STRIP if WIDE_VNNI else STRIP // 2
_HALVES = STRIP // _WIDTH
_FLOATS, _INTS = ir.VectorType(FLOAT, _WIDTH), ir.VectorType(INT, _WIDTH)
_SHORTS, _BYTES = ir.VectorType(ir.IntType(16), 2 * _WIDTH), ir.VectorType(BYTE, 4 * _WIDTH)
_SMALL, _HALFS = ir.VectorType(BYTE, _WIDTH), ir.VectorType(ir.HalfType(), _WIDTH)
_FIRST_OF_256 = 2  # kinds from this number on have units of 256 columns
_Product = Callable[[ir.Value, ir.Value], ir.Value]  # (address of a line, sums) -> sums
_VNNI = "llvm.x86.avx512.vpdpbusd.512" if WIDE_VNNI else "llvm.x86.avx512.vpdpbusd.256" if NARROW_VNNI else None


def _load(b: ir.IRBuilder, address: ir.Value, offset: int, kind: ir.Type) -> ir.Value:
    return b.load(pointer(b, address, offset, kind), align=4)


def _everywhere(b: ir.IRBuilder, address: ir.Value, offset: int, kind: ir.VectorType) -> ir.Value:
    """Load one number into every lane."""
    return splat(b, _load(b, address, offset, kind.element), kind)


def _prefetch(b: ir.IRBuilder, address: ir.Value, size: int) -> None:
    """Ask for memory that is needed soon: widening leaves the processor too few instructions ahead to see it."""
    function = ir.FunctionType(ir.VoidType(), [BYTE.as_pointer(), INT, INT, INT])
    prefetch = cgutils.get_or_insert_function(b.module, function, "llvm.prefetch.p0")
    for offset in range(_AHEAD, _AHEAD + size, 64):
        b.call(prefetch, [pointer(b, address, offset, BYTE), INT(0), INT(3), INT(1)])


def _fma(b: ir.IRBuilder, x: ir.Value, y: ir.Value, z: ir.Value) -> ir.Value:
    return call(b, f"llvm.fma.v{_WIDTH}f32", _FLOATS, x, y, z)


def _bits(b: ir.IRBuilder, row: ir.Value, piece: Piece) -> ir.Value:
    """Return a piece's bits in their place. Shifts are of 16 bits; the mask removes a neighbouring byte's bits."""
    left = piece.place - piece.shift
    pairs, amount = b.bitcast(row, _SHORTS), ir.Constant(_SHORTS, [abs(left)] * 2 * _WIDTH)
    moved = pairs if left == 0 else b.shl(pairs, amount) if left > 0 else b.lshr(pairs, amount)
    mask = (2**piece.width - 1) << piece.place
    return b.and_(b.bitcast(moved, _BYTES), ir.Constant(_BYTES, [mask] * 4 * _WIDTH))


def _widened(b: ir.IRBuilder, at: ir.Value, kind: BlockKind, half: int) -> list[ir.Value]:
    """Return the values of the eight steps of 32 columns as bytes.  # [channels, 4] each."""
    rows = [_load(b, at, 64 * row + 4 * _WIDTH * half, _BYTES) for row in range(kind.bits)]
    if kind.bits == 8:
        flip = ir.Constant(_BYTES, [128] * 4 * _WIDTH)
        return [b.xor(row, flip) for row in rows] if _VNNI else rows
    return [reduce(b.or_, [_bits(b, rows[piece.row], piece) for piece in step]) for step in PIECES[kind.bits]]


def _sum(b: ir.IRBuilder, values: list[ir.Value], line: ir.Value, first: int, kind: BlockKind) -> ir.Value:
    """Return Σ x · (value − offset) of a block's steps; the block starts at step `first` of the line.  # int32."""
    inputs = [b.bitcast(_everywhere(b, line, 4 * (first + step), _INTS), _BYTES) for step in range(len(values))]
    offset = 128 if _VNNI and kind.bits == 8 else kind.offset
    total = _everywhere(b, line, MINUS_SUM_BY_OFFSET[offset] + first, _INTS) if offset else _INTS([0] * _WIDTH)
    if _VNNI:
        for value, x in zip(values, inputs, strict=True):
            total = call(b, _VNNI, _INTS, total, value, x)
        return total
    if kind.bits == 8:
        pairs = [_signed_pairs(b, value, x) for value, x in zip(values, inputs, strict=True)]
    else:
        pairs = [
            call(b, "llvm.x86.avx2.pmadd.ub.sw", _SHORTS, value, x) for value, x in zip(values, inputs, strict=True)
        ]
    added = max(1, 32767 // (2 * 127 * (2**kind.bits - 1)))  # products of a pair that 16 bits hold
    ones = ir.Constant(_SHORTS, [1] * 2 * _WIDTH)
    for start in range(0, len(pairs), added):
        exact = pairs[start]
        for pair in pairs[start + 1 : start + added]:
            exact = b.add(exact, pair)
        total = b.add(total, call(b, "llvm.x86.avx2.pmadd.wd", _INTS, exact, ones))
    return total


def _signed_pairs(b: ir.IRBuilder, value: ir.Value, x: ir.Value) -> ir.Value:
    """Return sums of two products of signed bytes, |value| · (sign(value) · x), which 16 bits hold."""
    size = call(b, "llvm.abs.v32i8", _BYTES, value, ir.IntType(1)(0))
    return call(b, "llvm.x86.avx2.pmadd.ub.sw", _SHORTS, size, call(b, "llvm.x86.avx2.psign.b", _BYTES, x, value))


def _products(b: ir.IRBuilder, kind: BlockKind, at: ir.Value, factors: list[ir.Value], half: int) -> _Product:
    """Widen 32 columns of half a strip; return a function that adds their product with a line to sums."""

    def integers(index: int, *, signed: bool) -> ir.Value:
        small = _load(b, at, STRIP * index + _WIDTH * half, _SMALL)
        return b.sitofp(b.sext(small, _INTS) if signed else b.zext(small, _INTS), _FLOATS)

    blocks = COLUMNS // kind.block
    scales = [b.fmul(factors[0], integers(n, signed=True)) for n in range(blocks)] if kind.scales_bytes else factors[:1]
    minimum = b.fmul(factors[1], integers(blocks, signed=False)) if kind.has_minimum else None
    steps, count = _widened(b, b.add(at, LONG(kind.scales_bytes)), kind, half), STEPS // blocks

    def product(line: ir.Value, sums: ir.Value) -> ir.Value:
        total = None if minimum is None else b.fmul(minimum, _everywhere(b, line, MINUS_SUM, _FLOATS))
        for n, scale in enumerate(scales):
            exact = b.sitofp(_sum(b, steps[count * n : count * (n + 1)], line, count * n, kind), _FLOATS)
            total = b.fmul(exact, scale) if total is None else _fma(b, exact, scale, total)
        return _fma(b, total, _everywhere(b, line, SCALE, _FLOATS), sums)

    return product


def _tile(kind: BlockKind, *, one_row: bool) -> Any:  # noqa: ANN401  (a numba intrinsic)
    """Emit the product of rows with a strip of one kind: float32 [rows, 64], of which 16 columns are increased.

    One row keeps its sums in registers.
    """

    @operation(types.void, *[types.int64] * 6)
    def emit(
        b: ir.IRBuilder,
        rows: ir.Value,
        lines: ir.Value,
        stride: ir.Value,
        weights: ir.Value,
        units: ir.Value,
        out: ir.Value,
    ) -> None:
        def sums(row: ir.Value, half: int) -> ir.Value:
            return pointer(b, b.add(out, b.mul(row, LONG(256))), 4 * _WIDTH * half, _FLOATS)

        only = [cgutils.alloca_once(b, _FLOATS) for _ in range(_HALVES)]
        for half, slot in enumerate(only):
            b.store(b.load(sums(LONG(0), half), align=4), slot)
        parts = kind.unit // COLUMNS
        with cgutils.for_range(b, units, intp=LONG) as unit:
            at = b.add(weights, b.mul(unit.index, LONG(kind.unit_bytes)))
            factors = [
                [
                    b.fpext(_load(b, at, 2 * (STRIP * n + _WIDTH * half), _HALFS), _FLOATS)
                    for n in range(1 + kind.has_minimum)
                ]
                for half in range(_HALVES)
            ]
            with cgutils.for_range(b, LONG(parts), intp=LONG) as part:
                columns = b.add(b.add(at, LONG(kind.factors_bytes)), b.mul(part.index, LONG(kind.columns_bytes)))
                line = b.add(lines, b.mul(b.add(b.mul(unit.index, LONG(parts)), part.index), LONG(LINE_BYTES)))
                if kind.bits < 8:
                    _prefetch(b, columns, kind.columns_bytes)
                for half, slot in enumerate(only):
                    product = _products(b, kind, columns, factors[half], half)
                    if one_row:
                        b.store(product(line, b.load(slot)), slot)
                        # Without this fence, LLVM keeps the inputs of both halves in more registers than there are.
                        b.asm(ir.FunctionType(ir.VoidType(), []), "", "~{memory}", [], side_effect=True)
                        continue
                    with cgutils.for_range(b, rows, intp=LONG) as loop:
                        at_row = sums(loop.index, half)
                        here = b.add(line, b.mul(stride, loop.index))
                        b.store(product(here, b.load(at_row, align=4)), at_row, align=4)
        if one_row:
            for half, slot in enumerate(only):
                b.store(b.load(slot), sums(LONG(0), half), align=4)

    return emit


_q5_0, _q8_0, _q4_k, _q6_k = (_tile(kind, one_row=False) for kind in KINDS)
_one_q5_0, _one_q8_0, _one_q4_k, _one_q6_k = (_tile(kind, one_row=True) for kind in KINDS)


@njit
def multiply_strip(kind: int, rows: int, lines: int, width: int, weights: int, out: int) -> None:
    """Add the product of rows with a strip to float32 sums.

    Args:
        kind: Number of the strip's kind.
        rows: Number of rows.
        lines: Address of the first row's lines.
        width: Number of columns.
        weights: Address of the strip.
        out: Address of the first row's 16 sums; rows are 64 float32 apart.
    """
    stride, units = 2 * width, width // 32 if kind < _FIRST_OF_256 else width // 256
    if rows == 1:
        if kind == 0:
            _one_q5_0(rows, lines, stride, weights, units, out)
        elif kind == 1:
            _one_q8_0(rows, lines, stride, weights, units, out)
        elif kind == 2:
            _one_q4_k(rows, lines, stride, weights, units, out)
        else:
            _one_q6_k(rows, lines, stride, weights, units, out)
    elif kind == 0:
        _q5_0(rows, lines, stride, weights, units, out)
    elif kind == 1:
        _q8_0(rows, lines, stride, weights, units, out)
    elif kind == 2:
        _q4_k(rows, lines, stride, weights, units, out)
    else:
        _q6_k(rows, lines, stride, weights, units, out)
