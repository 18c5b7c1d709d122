"""Sixty-four products of unsigned by signed bytes, added in fours to sixteen sums, for three generations of processors.

All three variants are exact and give the same integers.
"""

from __future__ import annotations

from llvmlite import ir

from completion.model.int8.kernels.processor import NARROW_VNNI, WIDE_VNNI
from completion.model.int8.kernels.vector import INT, INTS, LANES, call

_HALF = LANES // 2
_HALF_INTS = ir.VectorType(INT, _HALF)
_PAIRS = ir.VectorType(ir.IntType(16), 2 * _HALF)


def add_products(builder: ir.IRBuilder, sums: ir.Value, unsigned: ir.Value, signed: ir.Value) -> ir.Value:
    """Compute sums[i] + Σ_j unsigned[4i + j] · signed[4i + j].  sums: # int32 [16]; the others: # bytes [64]."""
    if WIDE_VNNI:
        return call(builder, "llvm.x86.avx512.vpdpbusd.512", INTS, sums, unsigned, signed)
    halves = [
        _add_half(builder, _half(builder, sums, n), _half(builder, unsigned, n), _half(builder, signed, n))
        for n in range(2)
    ]
    return builder.shuffle_vector(*halves, ir.Constant(ir.VectorType(INT, LANES), list(range(LANES))))


def _add_half(builder: ir.IRBuilder, sums: ir.Value, unsigned: ir.Value, signed: ir.Value) -> ir.Value:
    """Do the same for eight sums: one instruction of AVX-VNNI, or two products of 16-bit pairs with AVX2."""
    if NARROW_VNNI:
        return call(builder, "llvm.x86.avx512.vpdpbusd.256", _HALF_INTS, sums, unsigned, signed)
    eight = ir.Constant(_PAIRS, [8] * 2 * _HALF)
    weights, inputs = builder.bitcast(unsigned, _PAIRS), builder.bitcast(signed, _PAIRS)
    low = builder.and_(weights, ir.Constant(_PAIRS, [255] * 2 * _HALF))  # bytes 0 and 2 of each four
    high = builder.lshr(weights, eight)  # bytes 1 and 3
    low_inputs = builder.ashr(builder.shl(inputs, eight), eight)
    high_inputs = builder.ashr(inputs, eight)
    products = [
        call(builder, "llvm.x86.avx2.pmadd.wd", _HALF_INTS, *pair) for pair in ((low, low_inputs), (high, high_inputs))
    ]
    return builder.add(builder.add(sums, products[0]), products[1])


def _half(builder: ir.IRBuilder, value: ir.Value, which: int) -> ir.Value:
    count = value.type.count // 2
    indices = list(range(which * count, (which + 1) * count))
    return builder.shuffle_vector(value, value, ir.Constant(ir.VectorType(INT, count), indices))
