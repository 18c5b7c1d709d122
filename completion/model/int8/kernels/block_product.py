"""Products of int8 rows with weights in the blocks of llama.cpp; see `block_kinds` for their layout.

Values are widened to bytes in registers, once for all rows of a tile. Sums over a block are exact integers:
y[c] += x_scale · (Σ_blocks scale[c] · Σ x · value[c]). Every float sum has a fixed order, so a row's result never
depends on its batch.

A row is a sequence of lines, one for each 32 columns: 32 int8 and the numbers that the block's product needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, reduce

from llvmlite import ir
from numba import types
from numba.core import cgutils

from completion.model.int8.kernels.block_kinds import COLUMNS, KINDS, PIECES, STEPS, STRIP, BlockKind, Piece
from completion.model.int8.kernels.instructions import INSTRUCTIONS
from completion.model.int8.kernels.instructions.description import Instructions
from completion.model.int8.kernels.vector import (
    BYTE,
    FLOAT,
    INT,
    LONG,
    Values,
    call,
    choice,
    operation,
    pointer,
    prefetch,
    splat,
)
from drafting.machine_code.functions import inner

LINE_BYTES = 64
"""Bytes of a line: 32 int8, and eight words at the offsets below."""
SCALE, MINUS_SUM = 32, 36
"""float32: the scale of the line's int8, and −Σ x."""
MINUS_SUM_BY_OFFSET = {16: 40, 128: 44, 32: 48}
"""int32 for each offset of a kind: −offset · Σ x; for 32 the sums of both halves of the line."""

_FIRST_OF_256 = 2  # kinds from this number on have units of 256 columns
_Product = Callable[[Values, Values], Values]  # (addresses of lines, sums) -> sums


class StripProduct:
    """Emits the product of rows with a strip of one kind, for one processor."""

    def __init__(self, kind: BlockKind, instructions: Instructions) -> None:
        self.kind, self.instructions = kind, instructions
        self._width = instructions.strip_channels
        self._floats, self._ints = ir.VectorType(FLOAT, self._width), ir.VectorType(INT, self._width)
        self._bytes, bits = ir.VectorType(BYTE, 4 * self._width), instructions.shift_bits
        self._shifted = ir.VectorType(ir.IntType(bits), 32 * self._width // bits)

    def emit(
        self,
        b: ir.IRBuilder,
        rows: ir.Value,
        lines: ir.Value,
        stride: ir.Value,
        weights: ir.Value,
        units: ir.Value,
        out: ir.Value,
        *,
        one_row: bool,
    ) -> None:
        """Emit float32 [rows, 64], of which 16 columns are increased. One row keeps its sums in registers.

        The other arguments are those of `multiply_strip`, and the bytes from a row's lines to the next one's.
        """
        kind, parts, halves = self.kind, self.kind.unit // COLUMNS, range(STRIP // self._width)

        def sums(row: ir.Value, half: int) -> ir.Value:
            return pointer(b, b.add(out, b.mul(row, LONG(256))), 4 * self._width * half, self._floats)

        only = [cgutils.alloca_once(b, self._floats) for _ in halves]
        for half, slot in enumerate(only):
            b.store(b.load(sums(LONG(0), half), align=4), slot)
        with cgutils.for_range(b, units, intp=LONG) as unit:
            at = b.add(weights, b.mul(unit.index, LONG(kind.unit_bytes)))
            factors = [self._factors(b, at, half) for half in halves]
            with cgutils.for_range(b, LONG(parts), intp=LONG) as part:
                columns = b.add(b.add(at, LONG(kind.factors_bytes)), b.mul(part.index, LONG(kind.columns_bytes)))
                line = b.add(lines, b.mul(b.add(b.mul(unit.index, LONG(parts)), part.index), LONG(LINE_BYTES)))
                if kind.bits < 8:
                    prefetch(b, columns, kind.columns_bytes, self.instructions.prefetches)
                for half, slot in enumerate(only):
                    product = self._product(b, columns, factors[half], half, together=not one_row)
                    if one_row:
                        b.store(product([line], [b.load(slot)])[0], slot)
                        # Without this fence, LLVM keeps the inputs of both halves in more registers than there are.
                        b.asm(ir.FunctionType(ir.VoidType(), []), "", "~{memory}", [], side_effect=True)
                        continue
                    for chosen in self._row_groups(b, rows):
                        at_rows = [sums(row, half) for row in chosen]
                        here = [b.add(line, b.mul(stride, row)) for row in chosen]
                        results = product(here, [b.load(at_row, align=4) for at_row in at_rows])
                        for at_row, result in zip(at_rows, results, strict=True):
                            b.store(result, at_row, align=4)
        if one_row:
            for half, slot in enumerate(only):
                b.store(b.load(slot), sums(LONG(0), half), align=4)

    def _row_groups(self, b: ir.IRBuilder, rows: ir.Value) -> Iterator[Values]:
        """Emit a loop over groups of rows; yield a group once. The last one repeats the last row to be complete."""
        size = self.instructions.strip_rows
        with cgutils.for_range(b, b.udiv(b.add(rows, LONG(size - 1)), LONG(size)), intp=LONG) as loop:
            first = b.mul(loop.index, LONG(size))
            others = [b.add(first, LONG(n)) for n in range(1, size)]
            last = b.sub(rows, LONG(1))
            yield [first, *(b.select(b.icmp_signed("<", row, last), row, last) for row in others)]

    def _factors(self, b: ir.IRBuilder, at: ir.Value, half: int) -> Values:
        """Load a unit's factors."""
        halfs = ir.VectorType(ir.HalfType(), self._width)
        offsets = [2 * (STRIP * n + self._width * half) for n in range(1 + self.kind.has_minimum)]
        return [b.fpext(_load(b, at, offset, halfs), self._floats) for offset in offsets]

    def _product(self, b: ir.IRBuilder, at: ir.Value, factors: Values, half: int, *, together: bool) -> _Product:
        """Widen 32 columns of half a strip; return a function that adds their product with lines to sums."""
        kind, small = self.kind, ir.VectorType(BYTE, self._width)

        def integers(index: int, *, signed: bool) -> ir.Value:
            found = _load(b, at, STRIP * index + self._width * half, small)
            return b.sitofp(b.sext(found, self._ints) if signed else b.zext(found, self._ints), self._floats)

        blocks = COLUMNS // kind.block
        scales = (
            [b.fmul(factors[0], integers(n, signed=True)) for n in range(blocks)] if kind.scales_bytes else factors[:1]
        )
        minimum = b.fmul(factors[1], integers(blocks, signed=False)) if kind.has_minimum else None
        steps, count = self._widened(b, b.add(at, LONG(kind.scales_bytes)), half), STEPS // blocks
        if together:
            steps = self.instructions.for_rows(b, steps)

        def product(lines: Values, sums: Values) -> Values:
            totals = [
                None if minimum is None else b.fmul(minimum, _everywhere(b, line, MINUS_SUM, self._floats))
                for line in lines
            ]
            for n, scale in enumerate(scales):
                for row, whole in enumerate(self._sums(b, steps[count * n : count * (n + 1)], lines, count * n)):
                    exact, total = b.sitofp(whole, self._floats), totals[row]
                    totals[row] = b.fmul(exact, scale) if total is None else self._fma(b, exact, scale, total)
            return [
                self._fma(b, total, _everywhere(b, line, SCALE, self._floats), before)
                for total, line, before in zip(totals, lines, sums, strict=True)
            ]

        return product

    def _sums(self, b: ir.IRBuilder, values: Values, lines: Values, first: int) -> Values:
        """Return Σ x · (value − offset) of a block's steps; the block starts at step `first` of the line.  # int32."""
        offset = self.kind.offset if self.kind.bits < 8 else self.instructions.byte_offset
        zero = ir.Constant(self._ints, [0] * self._width)
        starts = [
            _everywhere(b, line, MINUS_SUM_BY_OFFSET[offset] + first, self._ints) if offset else zero for line in lines
        ]
        return self.instructions.block_sums(b, values, lines, first, starts, self.kind.bits)

    def _widened(self, b: ir.IRBuilder, at: ir.Value, half: int) -> Values:
        """Return the values of the eight steps of 32 columns as bytes.  # [channels, 4] each."""
        bits = self.kind.bits
        rows = [_load(b, at, 64 * row + 4 * self._width * half, self._bytes) for row in range(bits)]
        if bits == 8:
            offset = ir.Constant(self._bytes, [self.instructions.byte_offset] * 4 * self._width)
            return [b.xor(row, offset) for row in rows]
        return [reduce(b.or_, [self._bits(b, rows[piece.row], piece) for piece in step]) for step in PIECES[bits]]

    def _bits(self, b: ir.IRBuilder, row: ir.Value, piece: Piece) -> ir.Value:
        """Return a piece's bits in their place; the mask removes their neighbours, also of the next byte."""
        left, mask = piece.place - piece.shift, (2**piece.width - 1) << piece.place
        shift, amount = b.shl if left > 0 else b.lshr, ir.Constant(self._shifted, [abs(left)] * self._shifted.count)
        moved = b.bitcast(shift(b.bitcast(row, self._shifted), amount), self._bytes) if left else row
        return b.and_(moved, ir.Constant(self._bytes, [mask] * 4 * self._width))

    def _fma(self, b: ir.IRBuilder, x: ir.Value, y: ir.Value, z: ir.Value) -> ir.Value:
        return call(b, f"llvm.fma.v{self._width}f32", self._floats, x, y, z)


def _load(b: ir.IRBuilder, address: ir.Value, offset: int, kind: ir.Type) -> ir.Value:
    return b.load(pointer(b, address, offset, kind), align=4)


def _everywhere(b: ir.IRBuilder, address: ir.Value, offset: int, kind: ir.VectorType) -> ir.Value:
    """Load one number into every lane."""
    return splat(b, _load(b, address, offset, kind.element), kind)


_STRIPS = [StripProduct(kind, INSTRUCTIONS) for kind in KINDS]
_strip = operation(types.void, *[types.int64] * 7)(
    choice([partial(strip.emit, one_row=one_row) for one_row in (False, True) for strip in _STRIPS])
)
_ONE_ROW = len(KINDS)
"""Number of the first piece of `_strip` for one row."""


@inner
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
    units = width // 32 if kind < _FIRST_OF_256 else width // 256
    _strip(kind + _ONE_ROW if rows == 1 else kind, rows, lines, 2 * width, weights, units, out)
