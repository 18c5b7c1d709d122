"""Products of bytes on three generations of x86: AVX2, AVX-VNNI and AVX-512 VNNI."""

from __future__ import annotations

from llvmlite import ir

from completion.model.int8.kernels.instructions.description import Instructions
from completion.model.int8.kernels.processor import X86_WEIGHTS, has_amx, has_vnni, is_wide
from completion.model.int8.kernels.sizes import LANES
from completion.model.int8.kernels.vector import BYTES, INT, INTS, Values, call, pointer, splat

_REGISTERS = 4  # of sixteen sums: a panel's channels


class X86(Instructions):
    """A processor with at least AVX2. Products of bytes are of unsigned by signed ones."""

    weight_offset, run = X86_WEIGHTS
    tile_columns, tile_queries, strip_rows, shift_bits = 4, 6, 1, 16
    # All weights, two threads, one row: 14.3 ms with both, 15.4 with 2048 bytes and the first cache, 18.9 with none.
    prefetches = ((4096, 2), (1024, 3))

    def __init__(self, features: frozenset[str]) -> None:
        wide = is_wide(features)  # 32 registers of sixteen numbers, not 16 of eight
        size = 512 if wide and "avx512vnni" in features else 256
        self._vnni = f"llvm.x86.avx512.vpdpbusd.{size}" if has_vnni(features) else None
        self._width = size // 32
        self.tile_rows = 6 if wide else 1  # 6 · 4 sums, 4 weights and a row's inputs
        self.attention_sums = 24 if wide else 5  # 10 of 16 registers: four more hold values, one a broadcast
        self.strip_channels = self._width
        self.byte_offset = 128 if self._vnni else 0
        self.has_amx = has_amx(features)

    def tile_channels(self, rows: int) -> int:  # noqa: ARG002
        return _REGISTERS * LANES

    def empty_sums(self, rows: int) -> list[ir.Constant]:
        return [ir.Constant(INTS, [0] * LANES)] * (rows * _REGISTERS)

    def add_columns(self, b: ir.IRBuilder, sums: Values, weights: ir.Value, rows: Values) -> Values:
        panel = [b.load(pointer(b, weights, 64 * n, BYTES), align=64) for n in range(_REGISTERS)]
        inputs = [b.bitcast(splat(b, b.load(pointer(b, row, 0, INT), align=4), INTS), BYTES) for row in rows]
        return [self._sixteen(b, total, panel[n % _REGISTERS], inputs[n // _REGISTERS]) for n, total in enumerate(sums)]

    def tile_sums(self, _b: ir.IRBuilder, sums: Values, rows: int) -> list[Values]:
        return [sums[_REGISTERS * row : _REGISTERS * (row + 1)] for row in range(rows)]

    def _sixteen(self, b: ir.IRBuilder, sums: ir.Value, unsigned: ir.Value, signed: ir.Value) -> ir.Value:
        """Compute sums[i] + Σ_j unsigned[4i + j] · signed[4i + j].  sums: # int32 [16]; the others: # bytes [64]."""
        if self._width == LANES:
            return call(b, str(self._vnni), INTS, sums, unsigned, signed)
        halves = [self._eight(b, *(_half(b, value, n) for value in (sums, unsigned, signed))) for n in range(2)]
        return b.shuffle_vector(*halves, ir.Constant(INTS, list(range(LANES))))

    def _eight(self, b: ir.IRBuilder, sums: ir.Value, unsigned: ir.Value, signed: ir.Value) -> ir.Value:
        """Do the same for eight sums: one instruction of AVX-VNNI, or two products of 16-bit pairs with AVX2."""
        if self._vnni:
            return call(b, self._vnni, sums.type, sums, unsigned, signed)
        pairs = ir.VectorType(ir.IntType(16), 16)
        eight = ir.Constant(pairs, [8] * 16)
        weights, inputs = b.bitcast(unsigned, pairs), b.bitcast(signed, pairs)
        low = b.and_(weights, ir.Constant(pairs, [255] * 16))  # bytes 0 and 2 of each four
        high = b.lshr(weights, eight)  # bytes 1 and 3
        low_inputs = b.ashr(b.shl(inputs, eight), eight)
        high_inputs = b.ashr(inputs, eight)
        products = [
            call(b, "llvm.x86.avx2.pmadd.wd", sums.type, *pair) for pair in ((low, low_inputs), (high, high_inputs))
        ]
        return b.add(b.add(sums, products[0]), products[1])

    def block_sums(
        self, b: ir.IRBuilder, values: Values, lines: Values, first: int, starts: Values, bits: int
    ) -> Values:
        (line,), (total,) = lines, starts
        kind, of_bytes = ir.VectorType(INT, self._width), ir.VectorType(ir.IntType(8), 4 * self._width)
        inputs = [
            b.bitcast(splat(b, b.load(pointer(b, line, 4 * (first + step), INT), align=4), kind), of_bytes)
            for step in range(len(values))
        ]
        if self._vnni:
            for value, x in zip(values, inputs, strict=True):
                total = call(b, self._vnni, kind, total, value, x)
            return [total]
        shorts = ir.VectorType(ir.IntType(16), 2 * self._width)
        if bits == 8:
            pairs = [_signed_pairs(b, value, x, shorts) for value, x in zip(values, inputs, strict=True)]
        else:
            pairs = [
                call(b, "llvm.x86.avx2.pmadd.ub.sw", shorts, value, x) for value, x in zip(values, inputs, strict=True)
            ]
        added = max(1, 32767 // (2 * 127 * (2**bits - 1)))  # products of a pair that 16 bits hold
        ones = ir.Constant(shorts, [1] * 2 * self._width)
        for start in range(0, len(pairs), added):
            exact = pairs[start]
            for pair in pairs[start + 1 : start + added]:
                exact = b.add(exact, pair)
            total = b.add(total, call(b, "llvm.x86.avx2.pmadd.wd", kind, exact, ones))
        return [total]

    def pause(self, b: ir.IRBuilder) -> None:
        call(b, "llvm.x86.sse2.pause", ir.VoidType())


def _signed_pairs(b: ir.IRBuilder, value: ir.Value, x: ir.Value, shorts: ir.VectorType) -> ir.Value:
    """Return sums of two products of signed bytes, |value| · (sign(value) · x), which 16 bits hold."""
    size = call(b, "llvm.abs.v32i8", value.type, value, ir.IntType(1)(0))
    return call(b, "llvm.x86.avx2.pmadd.ub.sw", shorts, size, call(b, "llvm.x86.avx2.psign.b", value.type, x, value))


def _half(b: ir.IRBuilder, value: ir.Value, which: int) -> ir.Value:
    count = value.type.count // 2
    indices = list(range(which * count, (which + 1) * count))
    return b.shuffle_vector(value, value, ir.Constant(ir.VectorType(INT, count), indices))
