"""Inner loops of attention: queries × keys, and probabilities × values, for up to six queries at once.

Keys and values are bfloat16 in pairs that share a 32-bit word, so that one load and two cheap operations give two
float32 registers:

- keys, in blocks of 16 slots: [block][head_dim / 2][16 slots][2], the pair being channels 2i and 2i + 1;
- values, in groups of 32 channels: [head_dim / 32][slot][16][2], the pair being channels i and i + 16 of the group.

Sums run over channels, or over slots, in ascending order, with one fused multiply-add each. So the number of queries
computed together does not change a result, and a slot of probability zero adds exactly nothing. A tile of queries takes
as many slots or channels at a time as there are registers for its sums.
"""

from __future__ import annotations

from functools import partial

from llvmlite import ir
from numba import types
from numba.core import cgutils

from completion.model.int8.kernels.instructions import INSTRUCTIONS
from completion.model.int8.kernels.sizes import BLOCK_SLOTS, LANES, SPAN_SLOTS, VALUE_CHANNELS
from completion.model.int8.kernels.vector import FLOAT, FLOATS, INT, LONG, call, choice, operation, pointer, splat
from drafting.machine_code.functions import inner

TILE_QUERIES = INSTRUCTIONS.tile_queries
"""Maximum number of queries computed together: each key and value is read and widened once for all of them."""


def _halves(builder: ir.IRBuilder, address: ir.Value, lanes: int) -> tuple[ir.Value, ir.Value]:
    """Load words of bfloat16 pairs as two float32 vectors: low halves, high halves."""
    ints, vector = ir.VectorType(INT, lanes), ir.VectorType(FLOAT, lanes)
    words = builder.load(pointer(builder, address, 0, ints), align=4)
    low = builder.shl(words, ir.Constant(ints, [16] * lanes))
    high = builder.and_(words, ir.Constant(ints, [0xFFFF0000] * lanes))
    return builder.bitcast(low, vector), builder.bitcast(high, vector)


def _add_product(builder: ir.IRBuilder, slot: ir.Value, factor: ir.Value, vector: ir.Value) -> None:
    """Emit slot += factor · vector, rounded once."""
    kind = vector.type
    total = call(builder, f"llvm.fma.v{kind.count}f32", kind, factor, vector, builder.load(slot))
    builder.store(total, slot)


def _broadcast(builder: ir.IRBuilder, address: ir.Value, offset: int, lanes: int) -> ir.Value:
    value = builder.load(pointer(builder, address, offset, FLOAT), align=4)
    return splat(builder, value, ir.VectorType(FLOAT, lanes))


def _accumulators(builder: ir.IRBuilder, rows: int, columns: int, lanes: int) -> list[list[ir.Value]]:
    """Return zeros in registers.  # [rows][columns] of float32 [lanes]."""
    kind = ir.VectorType(FLOAT, lanes)
    sums = [[cgutils.alloca_once(builder, kind) for _ in range(columns)] for _ in range(rows)]
    for row in sums:
        for slot in row:
            builder.store(ir.Constant(kind, [0.0] * lanes), slot)
    return sums


def _emit_scores(
    queries: int, b: ir.IRBuilder, q: ir.Value, keys: ir.Value, head_dim: ir.Value, out: ir.Value, stride: ir.Value
) -> None:
    """Emit the scores of `queries` queries and 64 slots: s[q, t] = Σ_d q[q, d] · k[t, d]."""
    blocks = next(count for count in (4, 2, 1) if count * queries <= max(queries, INSTRUCTIONS.attention_sums))
    block_bytes = b.mul(head_dim, LONG(2 * BLOCK_SLOTS))
    for first in range(0, SPAN_SLOTS // BLOCK_SLOTS, blocks):
        sums = _accumulators(b, queries, blocks, LANES)
        start = b.add(keys, b.mul(block_bytes, LONG(first)))
        with cgutils.for_range(b, b.udiv(head_dim, LONG(2)), intp=LONG) as loop:
            at = b.add(start, b.mul(loop.index, LONG(4 * LANES)))
            pairs = [_halves(b, b.add(at, b.mul(block_bytes, LONG(n))), LANES) for n in range(blocks)]
            for half in range(2):
                for index, row in enumerate(sums):
                    row_at = b.add(b.add(q, b.mul(head_dim, LONG(4 * index))), b.mul(loop.index, LONG(8)))
                    factor = _broadcast(b, row_at, 4 * half, LANES)
                    for slot, pair in zip(row, pairs, strict=True):
                        _add_product(b, slot, factor, pair[half])
        for index, row in enumerate(sums):
            row_at = b.add(out, b.mul(stride, LONG(index)))
            for n, slot in enumerate(row, first):
                b.store(b.load(slot), pointer(b, row_at, 4 * LANES * n, FLOATS), align=4)


def _emit_mixture(
    queries: int,
    b: ir.IRBuilder,
    p: ir.Value,
    stride: ir.Value,
    values: ir.Value,
    slots: ir.Value,
    out: ir.Value,
    out_stride: ir.Value,
) -> None:
    """Emit the weighted values of `queries` queries, 32 channels: o[q, d] = Σ_t p[q, t] · v[t, d]."""
    lanes = LANES if 2 * queries <= INSTRUCTIONS.attention_sums else LANES // 2
    for first in range(0, LANES, lanes):
        sums = _accumulators(b, queries, 2, lanes)
        with cgutils.for_range(b, slots, intp=LONG) as loop:
            at = b.add(b.add(values, LONG(4 * first)), b.mul(loop.index, LONG(2 * VALUE_CHANNELS)))
            pair = _halves(b, at, lanes)
            for index, row in enumerate(sums):
                row_at = b.add(b.add(p, b.mul(stride, LONG(index))), b.mul(loop.index, LONG(4)))
                factor = _broadcast(b, row_at, 0, lanes)
                for slot, half in zip(row, pair, strict=True):
                    _add_product(b, slot, factor, half)
        for index, row in enumerate(sums):
            row_at = b.add(out, b.mul(out_stride, LONG(index)))
            for n, slot in enumerate(row):
                to = pointer(b, row_at, 4 * (LANES * n + first), ir.VectorType(FLOAT, lanes))
                b.store(b.load(slot), to, align=4)


_COUNTS = range(1, TILE_QUERIES + 1)
_scores = operation(types.void, *[types.int64] * 6)(choice([partial(_emit_scores, count) for count in _COUNTS]))
_mixture = operation(types.void, *[types.int64] * 7)(choice([partial(_emit_mixture, count) for count in _COUNTS]))


@inner
def score_span(queries: int, q: int, keys: int, head_dim: int, out: int, stride: int) -> None:
    """Compute the scores of 1 to TILE_QUERIES queries with 64 slots.

    Args:
        queries: Number of queries.
        q: Address of the queries.  # float32 [queries, head_dim]
        keys: Address of the first of four blocks of keys.
        head_dim: Channels of a head.
        out: Address of the scores.  # float32 [queries, stride / 4]
        stride: Bytes from one query's scores to the next one's.
    """
    _scores(queries - 1, q, keys, head_dim, out, stride)


@inner
def mix_values(queries: int, p: int, stride: int, values: int, slots: int, out: int, out_stride: int) -> None:
    """Compute the weighted sums of values of 1 to TILE_QUERIES queries, 32 channels.

    Args:
        queries: Number of queries.
        p: Address of the weights.  # float32 [queries, stride / 4]
        stride: Bytes from one query's weights to the next one's.
        values: Address of a group of values.
        slots: Number of slots to sum over, from the first on.
        out: Address of the sums.  # float32 [queries, out_stride / 4]
        out_stride: Bytes from one query's sums to the next one's.
    """
    _mixture(queries - 1, p, stride, values, slots, out, out_stride)
