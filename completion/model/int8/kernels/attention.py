"""Attention of a few queries over one sequence's slots: scores, softmax over what a row sees, weighted values.

A row sees a contiguous part, slots 0 .. c−1, and then single slots: its ancestors in a draft tree, between which other
nodes lie. Sums are formed by position, not by slot, so a node of a tree gets bit for bit the result it has in a chain.
"""

from __future__ import annotations

import numpy as np
from numba import carray, njit, types

from completion.model.int8.kernels.attention_product import mix_values, score_span
from completion.model.int8.kernels.sizes import BLOCK_SLOTS, LANES, SCRATCH_FLOATS, SPAN_SLOTS, VALUE_CHANNELS
from completion.model.int8.kernels.slots import rotate_key, scatter_key
from completion.model.int8.kernels.vector import (
    SHORT,
    exp,
    floats,
    larger,
    largest_of,
    load_float,
    load_floats,
    operation,
    store_bfloat_pairs,
    store_bfloats,
    store_float,
    store_floats,
    sum_of,
)
from completion.model.int8.kernels.views import CacheView, RowsView, Sequences, Sizes
from drafting.arrays import FloatArray, IntArray
from drafting.machine_code.functions import inner

_ZERO, _NOTHING = np.float32(0.0), -np.float32(np.inf)

_shorts_at = operation(types.CPointer(types.uint16), types.int64)(lambda b, at: b.inttoptr(at, SHORT.as_pointer()))


@njit(inline="always")
def cache_of(sequences: Sequences, index: int, sizes: Sizes) -> CacheView:
    """Return the keys and values of a sequence."""
    layers, heads, width = sizes.layers, sizes.kv_heads, sizes.attention // (sizes.kv_heads * sizes.group)
    slots, at = sequences.slots[index], sequences.addresses[index]
    blocks, parts = slots // BLOCK_SLOTS, width // VALUE_CHANNELS
    return CacheView(
        carray(_shorts_at(at[0]), (layers, heads, blocks, width // 2, BLOCK_SLOTS, 2), np.uint16),
        carray(_shorts_at(at[1]), (layers, heads, slots, width), np.uint16),
        carray(_shorts_at(at[2]), (layers, heads, parts, slots, LANES, 2), np.uint16),
        sequences.cosines,
        sequences.sines,
        sequences.first_angles,
        sequences.windows,
    )


@inner
def write_row(
    layer: int,
    row: int,
    heads: int,
    factor: float,
    qkv: FloatArray,
    queries: FloatArray,
    rows: RowsView,
    cache: CacheView,
) -> None:
    """Rotate a row's queries and keys to its position ("RoFormer", equation 34); write key and value to its slot.

    `queries` receives rotated queries times `factor`, the scale of scores. The keys in `qkv` become scratch.

    qkv: # [rows, (heads + 2 kv_heads) · head_dim]; queries: # [kv_heads, ≥ rows · heads / kv_heads, head_dim]
    """
    kv_heads, head_dim = cache.plain_keys.shape[1], cache.plain_keys.shape[3]
    half, group = head_dim // 2, heads // kv_heads
    slot, angle = rows.slots[row], rows.positions[row] + cache.first_angles[layer]
    scale = np.float32(factor)
    for head in range(heads):
        query = queries[head // group, row * group + head % group]
        source = qkv[row, head * head_dim : (head + 1) * head_dim]
        for i in range(half):
            cosine, sine = cache.cosines[angle, i], cache.sines[angle, i]
            query[i] = (source[i] * cosine - source[i + half] * sine) * scale
            query[i + half] = (source[i + half] * cosine + source[i] * sine) * scale
    for head in range(kv_heads):
        key, plain = qkv[row, (heads + head) * head_dim :].ctypes.data, cache.plain_keys[layer, head, slot].ctypes.data
        for i in range(0, head_dim, LANES):
            store_bfloats(plain + 2 * i, load_floats(key + 4 * i))
        # What is rotated is what is kept, so that a key rotated again has the same bits.
        rotate_key(plain, angle, cache, key)
        scatter_key(key, slot, cache.keys[layer, head].ctypes.data, head_dim)
        value = qkv[row, (heads + kv_heads + head) * head_dim :].ctypes.data
        for part in range(head_dim // VALUE_CHANNELS):
            at, into = value + 4 * VALUE_CHANNELS * part, cache.values[layer, head, part, slot].ctypes.data
            store_bfloat_pairs(into, load_floats(at), load_floats(at + 4 * LANES))


@inner
def attend(
    layer: int,
    head: int,
    first: int,
    count: int,
    queries: FloatArray,
    rows: RowsView,
    cache: CacheView,
    scratch: FloatArray,
    out: FloatArray,
) -> None:
    """Compute the attention of `count` ≤ 6 neighbouring queries of one KV head and sequence: softmax(q kᵀ) v.

    Slots before the window of every query are left out.

    Args:
        layer: Index of the layer.
        head: Index of the KV head.
        first: First query within queries[head].
        count: Number of queries.
        queries: Rotated queries.  # [kv_heads, at least rows · group, head_dim], group = heads / kv_heads
        rows: The slots that each row sees.
        cache: Keys and values of the sequence.
        scratch: The thread's own scratch.  # [≥ SCRATCH_FLOATS + 6 · slots]
        out: Receives the results.  # [rows, heads · head_dim]
    """
    kv_heads, slots, head_dim = cache.plain_keys.shape[1:]
    group, window = out.shape[1] // head_dim // kv_heads, cache.windows[layer]
    begin, span = _seen(first, count, group, window, rows, slots)
    totals = scratch.ctypes.data + 4 * LANES
    mixture, scores, stride = totals + 4 * LANES, scratch.ctypes.data + 4 * SCRATCH_FLOATS, 4 * slots
    keys, query_at = cache.keys[layer, head].ctypes.data, queries[head, first].ctypes.data
    for slot in range(begin, span, SPAN_SLOTS):
        score_span(count, query_at, keys + slot * head_dim * 2, head_dim, scores + 4 * slot, stride)
    for query in range(count):
        row, at = (first + query) // group, scores + query * stride
        total = _softmax(at, begin, span, row, _first_seen(row, window, rows), rows, scratch.ctypes.data)
        store_float(totals + 4 * query, np.float32(1.0) / total)
    for part in range(head_dim // VALUE_CHANNELS):
        values = cache.values[layer, head, part].ctypes.data + 4 * LANES * begin
        mix_values(count, scores + 4 * begin, stride, values, span - begin, mixture, 4 * VALUE_CHANNELS)
        for query in range(count):
            row, member = (first + query) // group, (first + query) % group
            column = (head * group + member) * head_dim + part * VALUE_CHANNELS
            share, source = floats(load_float(totals + 4 * query)), mixture + 4 * VALUE_CHANNELS * query
            target = out.ctypes.data + 4 * (row * out.shape[1] + column)
            store_floats(target, load_floats(source) * share)
            store_floats(target + 4 * LANES, load_floats(source + 4 * LANES) * share)


@njit(inline="always")
def _seen(first: int, count: int, group: int, window: int, rows: RowsView, slots: int) -> tuple[int, int]:
    """Return the start of the first span that some of the queries see, and the slot after the last that they see."""
    span, begin = 0, slots
    for query in range(first, first + count):
        row = query // group
        span = max(span, _reach(row, rows))
        begin = min(begin, rows.contiguous[row], _first_seen(row, window, rows))
    return begin - begin % SPAN_SLOTS, span


@njit(inline="always")
def _reach(row: int, rows: RowsView) -> int:
    """Return the slot after the last one that a row sees."""
    end = rows.singles_start[row + 1]
    return rows.singles[end - 1] + 1 if end > rows.singles_start[row] else rows.contiguous[row]


@njit(inline="always")
def _first_seen(row: int, window: int, rows: RowsView) -> int:
    """Return the first position that a row sees."""
    return max(0, rows.positions[row] + 1 - window)


@inner
def _softmax(scores: int, begin: int, span: int, row: int, first: int, rows: RowsView, lanes: int) -> np.float32:
    """Turn a row of scores into e^(s − max), zero for slots that the row does not see; return their sum.

    Lane i of the sum adds positions i, i + 16, ... in order, whatever their slots.

    Args:
        scores: Address of the score of slot 0; those from slot `begin` to the end of the last span are there.
        begin: First slot of a span, not after `first` nor the end of the contiguous slots.
        span: Slot after the last one.
        row: Index of the row.
        first: First position that the row sees.
        rows: The slots that it sees without a window.
        lanes: Scratch for the lanes of the sum.
    """
    contiguous, start = rows.contiguous[row], rows.singles_start[row]
    hidden = min(first, contiguous)
    skipped = first - hidden
    singles = rows.singles[start + skipped : rows.singles_start[row + 1]]
    _hide(scores, begin, hidden, contiguous, singles, span + -span % SPAN_SLOTS)
    greatest, sums = floats(_greatest(scores + 4 * begin, scores + 4 * span)), floats(_ZERO)
    whole = scores + 4 * (contiguous - contiguous % LANES)
    for at in range(scores + 4 * begin, whole, 4 * LANES):
        weights = exp(load_floats(at) - greatest)
        store_floats(at, weights)
        sums = sums + weights
    for at in range(whole, scores + 4 * span, 4 * LANES):
        store_floats(at, exp(load_floats(at) - greatest))
    store_floats(lanes, sums)
    for slot in range(contiguous - contiguous % LANES, contiguous):
        _add_to_lane(lanes, slot, load_float(scores + 4 * slot))
    for index, slot in enumerate(singles):
        _add_to_lane(lanes, contiguous + skipped + index, load_float(scores + 4 * slot))
    return sum_of(load_floats(lanes))


@njit(inline="always")
def _hide(scores: int, begin: int, hidden: int, contiguous: int, singles: IntArray, end: int) -> None:
    """Make the scores of what a row does not see −∞: slots before `hidden`, and after `contiguous` but `singles`."""
    for slot in range(begin, hidden):
        store_float(scores + 4 * slot, _NOTHING)
    next_single = 0
    for slot in range(contiguous, end):
        if next_single < len(singles) and singles[next_single] == slot:
            next_single += 1
        else:
            store_float(scores + 4 * slot, _NOTHING)


@njit(inline="always")
def _greatest(begin: int, end: int) -> np.float32:
    """Return the greatest of the scores from an address to the end of the span in which `end` lies."""
    a = b = c = d = floats(_NOTHING)  # four, because each operation waits for the last one on its register
    for at in range(begin, end, 4 * SPAN_SLOTS):
        a = larger(load_floats(at), a)
        b = larger(load_floats(at + 4 * LANES), b)
        c = larger(load_floats(at + 8 * LANES), c)
        d = larger(load_floats(at + 12 * LANES), d)
    return largest_of(larger(larger(a, b), larger(c, d)))


@njit(inline="always")
def _add_to_lane(lanes: int, position: int, value: np.float32) -> None:
    at = lanes + 4 * (position % LANES)
    store_float(at, load_float(at) + value)
