"""Products of bytes on 64-bit Arm: `sdot` (FEAT_DotProd), and `smmla` where the processor has it (FEAT_I8MM).

Registers hold four sums. `sdot` adds four products to each: of a channel's four columns and a row's. `smmla` takes
eight columns of two channels and of two rows, and adds eight products to each of the four sums.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from completion.model.int8.kernels.instructions.description import Instructions
from completion.model.int8.kernels.processor import ARM_MATRIX_WEIGHTS, ARM_WEIGHTS
from completion.model.int8.kernels.vector import BYTE, INT, LONG, Values, call, pointer

_FOUR, _BYTES, _HALVES = ir.VectorType(INT, 4), ir.VectorType(BYTE, 16), ir.VectorType(LONG, 2)
_ZERO = ir.Constant(_FOUR, [0] * 4)
_FEATURES = '"target-features"="+neon,+dotprod{}"'


class Arm(Instructions):
    """A processor with `sdot`, which is of signed bytes. It has 32 registers."""

    weight_offset, run = ARM_WEIGHTS
    byte_offset, shift_bits = 0, 8
    tile_rows, tile_columns, tile_queries, strip_channels = 4, 16, 1, 8
    attention_sums, strip_rows = 4, 1
    prefetches = ((2048, 3),)
    _features = _FEATURES.format("")

    def tile_channels(self, rows: int) -> int:  # 16 registers of sums, or 12
        return {1: 64, 2: 32}.get(rows, 16)

    def empty_sums(self, rows: int) -> list[ir.Constant]:
        return [_ZERO] * (rows * self.tile_channels(rows) // 4)

    def add_columns(self, b: ir.IRBuilder, sums: Values, weights: ir.Value, rows: Values) -> Values:
        inputs, columns = [_load(b, row, 0) for row in rows], len(sums) // len(rows)
        for step in range(4):
            fours = [_lane(b, x, step) for x in inputs]
            panel = [_load(b, weights, 256 * step + 16 * n) for n in range(columns)]
            sums = [self._dot(b, total, panel[n % columns], fours[n // columns]) for n, total in enumerate(sums)]
        return sums

    def tile_sums(self, b: ir.IRBuilder, sums: Values, rows: int) -> list[Values]:
        sixteens = [_joined(b, sums[n : n + 4]) for n in range(0, len(sums), 4)]
        count = len(sixteens) // rows
        return [sixteens[count * row : count * (row + 1)] for row in range(rows)]

    def block_sums(
        self, b: ir.IRBuilder, values: Values, lines: Values, first: int, starts: Values, _bits: int
    ) -> Values:
        (line,), (start,) = lines, starts
        sums = [_part(b, start, n, 4) for n in range(2)]
        for step, value in enumerate(values):
            if step % 4 == 0:
                x = _load(b, line, 4 * (first + step))
            sums = [self._dot(b, sums[n], _part(b, value, n, 16), _lane(b, x, step % 4)) for n in range(2)]
        return [_joined(b, sums)]

    def pause(self, b: ir.IRBuilder) -> None:
        call(b, "llvm.aarch64.isb", ir.VoidType(), INT(15))  # `yield` takes no time on most processors

    def _dot(self, b: ir.IRBuilder, sums: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
        return self._call(b, "sdot", sums, left, right)

    def _call(self, b: ir.IRBuilder, name: str, *values: ir.Value) -> ir.Value:
        """Call an instruction, and let LLVM use it in this function: few names of processors imply it."""
        set.add(b.function.attributes, self._features)  # llvmlite's own `add` knows no attributes with a value
        return call(b, f"llvm.aarch64.neon.{name}.v4i32.v16i8", _FOUR, *values)


class ArmWithMatrices(Arm):
    """A processor that has `smmla` as well, for two rows and more."""

    weight_offset, run = ARM_MATRIX_WEIGHTS
    strip_rows = 2
    _features = _FEATURES.format(",+i8mm")

    def tile_channels(self, rows: int) -> int:  # 16 registers of sums
        return 32 if rows <= 2 else 16

    def empty_sums(self, rows: int) -> list[ir.Constant]:
        return [_ZERO] * ((rows + 1) // 2 * self.tile_channels(rows) // 2)

    def add_columns(self, b: ir.IRBuilder, sums: Values, weights: ir.Value, rows: Values) -> Values:
        inputs = [_load(b, row, 0) for row in rows]
        product = "sdot" if len(rows) == 1 else "smmla"
        pairs = [(inputs[n], inputs[min(n + 1, len(rows) - 1)]) for n in range(0, len(rows), 2)]
        columns = len(sums) // len(pairs)
        for step in range(2):
            eights = [_eights(b, *pair, step) for pair in pairs]
            panel = [_load(b, weights, 512 * step + 16 * n) for n in range(columns)]
            sums = [
                self._call(b, product, total, panel[n % columns], eights[n // columns]) for n, total in enumerate(sums)
            ]
        return sums

    def tile_sums(self, b: ir.IRBuilder, sums: Values, rows: int) -> list[Values]:
        pairs = list(zip(sums[::2], sums[1::2], strict=True))
        evens, odds = ([_every_other(b, *pair, which) for pair in pairs] for which in range(2))
        if rows == 1:
            return super().tile_sums(b, [b.add(*pair) for pair in zip(evens, odds, strict=True)], 1)
        count = self.tile_channels(rows) // 4
        ordered = [(odds if row % 2 else evens)[row // 2 * count :][:count] for row in range(rows)]
        return super().tile_sums(b, [total for row in ordered for total in row], rows)

    def for_rows(self, b: ir.IRBuilder, steps: Values) -> Values:
        """Join two steps of eight channels: eight columns of channels 0 to 3, then those of channels 4 to 7."""
        fours = ir.VectorType(INT, 8)
        found = []
        for left, right in zip(steps[::2], steps[1::2], strict=True):
            for start in (0, 4):
                indices = [index for n in range(start, start + 4) for index in (n, n + 8)]
                pairs = b.shuffle_vector(b.bitcast(left, fours), b.bitcast(right, fours), ir.Constant(fours, indices))
                found.append(b.bitcast(pairs, left.type))
        return found

    def block_sums(
        self, b: ir.IRBuilder, values: Values, lines: Values, first: int, starts: Values, bits: int
    ) -> Values:
        if len(lines) == 1:
            return super().block_sums(b, values, lines, first, starts, bits)
        sums = [_ZERO] * 4
        for step in range(0, len(values), 2):
            if step % 4 == 0:
                inputs = [_load(b, line, 4 * (first + step)) for line in lines]
            eights = _eights(b, inputs[0], inputs[1], step % 4 // 2)
            for n in range(4):
                sums[n] = self._call(b, "smmla", sums[n], _part(b, values[step + n // 2], n % 2, 16), eights)
        return [
            b.add(_joined(b, [_every_other(b, sums[n], sums[n + 1], row) for n in (0, 2)]), start)
            for row, start in enumerate(starts)
        ]


def _load(b: ir.IRBuilder, address: ir.Value, offset: int) -> ir.Value:
    return b.load(pointer(b, address, offset, _BYTES), align=4)


def _shuffled(b: ir.IRBuilder, left: ir.Value, right: ir.Value, indices: Sequence[int]) -> ir.Value:
    return b.shuffle_vector(left, right, ir.Constant(ir.VectorType(INT, len(indices)), list(indices)))


def _part(b: ir.IRBuilder, value: ir.Value, which: int, count: int) -> ir.Value:
    return _shuffled(b, value, value, range(which * count, (which + 1) * count))


def _lane(b: ir.IRBuilder, x: ir.Value, which: int) -> ir.Value:
    """Repeat four of sixteen bytes, which `sdot` does by itself."""
    fours = b.bitcast(x, _FOUR)
    return b.bitcast(_shuffled(b, fours, fours, [which] * 4), _BYTES)


def _eights(b: ir.IRBuilder, first: ir.Value, second: ir.Value, which: int) -> ir.Value:
    """Join eight bytes of each of two rows."""
    return b.bitcast(_shuffled(b, b.bitcast(first, _HALVES), b.bitcast(second, _HALVES), [which, 2 + which]), _BYTES)


def _every_other(b: ir.IRBuilder, left: ir.Value, right: ir.Value, which: int) -> ir.Value:
    return _shuffled(b, left, right, range(which, 8, 2))


def _joined(b: ir.IRBuilder, parts: Values) -> ir.Value:
    """Join an equal number of vectors to one."""
    while len(parts) > 1:
        parts = [
            _shuffled(b, left, right, range(2 * left.type.count))
            for left, right in zip(parts[::2], parts[1::2], strict=True)
        ]
    return parts[0]
