"""One forward pass of the decoder over some rows, as one compiled function that every thread runs.

A layer has the same stages as in `dense_transformer`. Threads share a stage's items (rows, panels of a matrix, tiles
of attention queries) and wait for each other between stages. Nobody reads what the last layer makes of a row whose
logits are not wanted, except its key and value, so there such a row ends once those are written.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from completion.model.int8.kernels import kernel_sources
from completion.model.int8.kernels.attention import attend, cache_of, write_row
from completion.model.int8.kernels.attention_product import TILE_QUERIES
from completion.model.int8.kernels.instructions.amx import configure, release
from completion.model.int8.kernels.int8_product import Inputs, Matrix, Target, multiply_panel, uses_amx
from completion.model.int8.kernels.row_operations import add_row, normalise_row, normalise_wholly, quantise_row
from completion.model.int8.kernels.sizes import (
    ADD,
    ATTENTION_OUT,
    CHANNELS,
    DOWN,
    KEY_NORM,
    LAYER_STAGES,
    LOGITS,
    NORM_1,
    NORM_2,
    POST_NORM_1,
    POST_NORM_2,
    QKV,
    QUERY_NORM,
    STORE,
    UP,
)
from completion.model.int8.kernels.views import Buffers, Outputs, RowsView, Sequences, Sizes
from completion.model.int8.kernels.work_sharing import claim, claim_near, finish, is_stopped, wait
from drafting.arrays import FloatArray, IntArray
from drafting.machine_code.functions import entry, inner

_NEAR_ROWS = 16
"""Number of rows up to which a thread takes panels that are neighbours in memory, for which a step of few rows waits.

Two threads: 1 to 4 rows took 0.94 to 0.95 of the time, 8 rows 0.97; 128 rows took 1.02 to 1.06.
"""


@njit(inline="always")
def _going_on(layer: int, sizes: Sizes, rows: RowsView) -> int:
    """Return how many rows, the first ones, a layer computes wholly."""
    return len(rows.slots) if layer < sizes.layers - 1 else len(rows.wanted)


@njit(inline="always")
def _attention_block(
    thread: int, layer: int, sizes: Sizes, table: IntArray, rows: RowsView, sequences: Sequences, buffers: Buffers
) -> None:
    """Compute x += W_o · attention(W_qkv · norm(x)) of the rows that go on; write keys and values of all rows.

    The output may have a norm, as may queries and keys.
    """
    stage, written, count, parts = layer * LAYER_STAGES, len(rows.slots), _going_on(layer, sizes, rows), table[layer]
    hidden = _inputs(buffers, sizes.hidden, sizes.hidden_group)
    _normalise(stage, written, parts[NORM_1], sizes, hidden, buffers)
    _multiply(thread, stage + 1, written, sizes.qkv, hidden, parts[QKV], STORE, buffers.qkv, buffers)
    _write(stage + 2, layer, sizes, parts, rows, sequences, buffers)
    _attend(thread, stage + 3, layer, sizes, rows, sequences, buffers)
    attention = _inputs(buffers, sizes.attention, sizes.attention_group)
    _quantise(stage + 4, count, buffers.attention, attention, buffers)
    matrix, norm = parts[ATTENTION_OUT], parts[POST_NORM_1]
    _add_product(thread, stage + 5, count, sizes, attention, matrix, norm, buffers)


@njit(inline="always")
def _mlp_block(thread: int, layer: int, sizes: Sizes, parts: IntArray, count: int, buffers: Buffers) -> None:
    """Compute x += W_down · (f(W_gate · norm(x)) ⊙ W_up · norm(x)), or W_down · f(W_up · norm(x)) without gate."""
    stage = layer * LAYER_STAGES + 7
    hidden = _inputs(buffers, sizes.hidden, sizes.hidden_group)
    _normalise(stage, count, parts[NORM_2], sizes, hidden, buffers)
    _multiply(thread, stage + 1, count, sizes.up, hidden, parts[UP], sizes.activation, buffers.gated, buffers)
    gated = _inputs(buffers, sizes.intermediate, sizes.intermediate_group)
    _quantise(stage + 2, count, buffers.gated, gated, buffers)
    matrix, norm = parts[DOWN], parts[POST_NORM_2]
    _add_product(thread, stage + 3, count, sizes, gated, matrix, norm, buffers)


@inner
def _add_product(
    thread: int,
    stage: int,
    count: int,
    sizes: Sizes,
    inputs: Inputs,
    matrix: IntArray,
    post_norm: IntArray,
    buffers: Buffers,
) -> None:
    """Add the product of all rows with a matrix to x, or its norm if the family has one there."""
    if post_norm[0] == 0:
        _multiply(thread, stage, count, sizes.hidden, inputs, matrix, ADD, buffers.x, buffers)
        return
    _multiply(thread, stage, count, sizes.hidden, inputs, matrix, STORE, buffers.normal, buffers)
    counters = buffers.counters.ctypes.data
    row = claim(counters, stage + 1)
    while row < count:
        normal = buffers.normal[row].ctypes.data
        normalise_wholly(normal, post_norm, sizes.hidden, sizes.epsilon, sizes.centred, normal)
        add_row(normal, sizes.hidden, buffers.x[row].ctypes.data)
        finish(counters, stage + 1)
        row = claim(counters, stage + 1)
    wait(counters, stage + 1, count)


@njit(inline="always")
def _head(thread: int, sizes: Sizes, parts: IntArray, buffers: Buffers, outputs: Outputs) -> None:
    """Compute the logits of the first rows, and the maximum of every 64."""
    stage, count = sizes.layers * LAYER_STAGES, len(outputs.logits)
    hidden = _inputs(buffers, sizes.hidden, sizes.hidden_group)
    _normalise(stage, count, parts[NORM_1], sizes, hidden, buffers)
    panels = sizes.vocabulary // CHANNELS
    target = Target(LOGITS, outputs.logits.ctypes.data, sizes.vocabulary, outputs.largest.ctypes.data, panels)
    _panels(thread, stage + 1, count, panels, hidden, parts[QKV], target, buffers)


@inner
def _inputs(buffers: Buffers, width: int, group_width: int) -> Inputs:
    return Inputs(buffers.quantised.ctypes.data, buffers.factors.ctypes.data, width, group_width)


@inner
def _normalise(stage: int, count: int, norm: IntArray, sizes: Sizes, inputs: Inputs, buffers: Buffers) -> None:
    """Quantise norm(x) of every row."""
    counters = buffers.counters.ctypes.data
    row = claim(counters, stage)
    while row < count:
        normal = buffers.normal[row].ctypes.data
        normalise_wholly(buffers.x[row].ctypes.data, norm, inputs.width, sizes.epsilon, sizes.centred, normal)
        quantise_row(normal, row, inputs)
        finish(counters, stage)
        row = claim(counters, stage)
    wait(counters, stage, count)


@inner
def _quantise(stage: int, count: int, source: FloatArray, inputs: Inputs, buffers: Buffers) -> None:
    counters = buffers.counters.ctypes.data
    row = claim(counters, stage)
    while row < count:
        quantise_row(source[row].ctypes.data, row, inputs)
        finish(counters, stage)
        row = claim(counters, stage)
    wait(counters, stage, count)


@inner
def _multiply(
    thread: int,
    stage: int,
    count: int,
    outputs: int,
    inputs: Inputs,
    matrix: IntArray,
    kind: int,
    out: FloatArray,
    buffers: Buffers,
) -> None:
    """Multiply all rows by a matrix of `outputs` channels."""
    target = Target(kind, out.ctypes.data, out.shape[1], np.uint64(0), 0)  # type: ignore[arg-type]  # as an address
    panels = (outputs + CHANNELS - 1) // CHANNELS
    _panels(thread, stage, count, panels, inputs, matrix, target, buffers)


@inner
def _panels(
    thread: int, stage: int, count: int, panels: int, inputs: Inputs, part: IntArray, target: Target, buffers: Buffers
) -> None:
    matrix = Matrix(part[0], part[1], part[2])
    counters, sums = buffers.counters.ctypes.data, buffers.sums[thread].ctypes.data
    ranges = len(buffers.sums) if count <= _NEAR_ROWS else 1
    panel = claim_near(counters, stage, panels, thread, ranges)
    while panel < panels:
        multiply_panel(count, panel, inputs, matrix, target, sums)
        finish(counters, stage)
        panel = claim_near(counters, stage, panels, thread, ranges)
    wait(counters, stage, panels)


@inner
def _write(
    stage: int, layer: int, sizes: Sizes, parts: IntArray, rows: RowsView, sequences: Sequences, buffers: Buffers
) -> None:
    """Rotate queries and keys, normalised if the family does, and write keys and values to their slots."""
    counters, count = buffers.counters.ctypes.data, len(rows.slots)
    heads = sizes.kv_heads * sizes.group
    head_dim = sizes.attention // heads
    row = claim(counters, stage)
    while row < count:
        if parts[QUERY_NORM, 0] != 0:
            for head in range(heads + sizes.kv_heads):
                at = buffers.qkv[row].ctypes.data + 4 * head * head_dim
                norm = parts[QUERY_NORM if head < heads else KEY_NORM, 0]
                normalise_row(at, norm, head_dim, sizes.epsilon, at)
        cache = cache_of(sequences, rows.sequences[row], sizes)
        write_row(layer, row, heads, sizes.attention_scale, buffers.qkv, buffers.queries, rows, cache)
        finish(counters, stage)
        row = claim(counters, stage)
    wait(counters, stage, count)


@inner
def _attend(
    thread: int, stage: int, layer: int, sizes: Sizes, rows: RowsView, sequences: Sequences, buffers: Buffers
) -> None:
    """Compute the attention of the rows that go on, in tiles of up to six queries of a KV head and a sequence.

    The last tiles of a sequence mostly see the most slots, so they are claimed first.
    """
    counters, before, end = buffers.counters.ctypes.data, 0, _going_on(layer, sizes, rows)
    item = claim(counters, stage)
    while end > 0:
        start = _first_row(rows, end - 1)
        cache, queries = cache_of(sequences, rows.sequences[start], sizes), (end - start) * sizes.group
        tiles = (queries + TILE_QUERIES - 1) // TILE_QUERIES
        while item < before + tiles * sizes.kv_heads:
            head, tile = (item - before) % sizes.kv_heads, tiles - 1 - (item - before) // sizes.kv_heads
            first, last = tile * queries // tiles, (tile + 1) * queries // tiles
            at, scratch = start * sizes.group + first, buffers.scratch[thread]
            attend(layer, head, at, last - first, buffers.queries, rows, cache, scratch, buffers.attention)
            finish(counters, stage)
            item = claim(counters, stage)
        before, end = before + tiles * sizes.kv_heads, start
    wait(counters, stage, before)


@njit(inline="always")
def _first_row(rows: RowsView, row: int) -> int:
    """Return the first of the neighbours of a row's sequence that lead to it."""
    while row > 0 and rows.sequences[row - 1] == rows.sequences[row]:
        row -= 1
    return row


def _compiled(kernel_sources: str) -> Callable[..., None]:
    """Compile the pass with a digest of all kernel sources enclosed.

    numba's cache on disk depends on one source file and on enclosed values, so the digest invalidates it.
    """

    @entry
    def run_layers(
        thread: int,
        sizes: Sizes,
        table: IntArray,
        rows: RowsView,
        sequences: Sequences,
        buffers: Buffers,
        outputs: Outputs,
        stop: int,
    ) -> None:
        if not len(kernel_sources):
            return
        by_amx = uses_amx(len(rows.slots), sizes.hidden_group)
        if by_amx:
            configure(0)
        layer = 0
        while layer < sizes.layers and not is_stopped(stop):
            _attention_block(thread, layer, sizes, table, rows, sequences, buffers)
            _mlp_block(thread, layer, sizes, table[layer], _going_on(layer, sizes, rows), buffers)
            layer += 1
        if layer == sizes.layers and len(outputs.logits):
            _head(thread, sizes, table[sizes.layers], buffers, outputs)
        if by_amx:
            release(0)

    compiled: Callable[..., None] = run_layers
    return compiled


run_layers = _compiled(kernel_sources())
"""Function that one thread runs for a pass.

Args:
    thread: Index of the thread, which selects its scratch memory.
    sizes: Sizes of the architecture.
    table: Addresses of the layers' weights, then of the final norm and the head.  # [layers + 1, parts, 3]
    rows: The rows to compute, those of rows.wanted first; their embeddings are in buffers.x.
    sequences: The rows' sequences, whose caches are read and written.
    buffers: Shared by all threads; counters are zero.
    outputs: Receives the logits of rows.wanted, or is empty.
    stop: Address of an int64; the pass ends before its next layer once that is not 0.
"""
