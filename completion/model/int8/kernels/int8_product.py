"""Products of int8 rows with packed matrices. Integer sums are exact: a row's result never depends on its batch.

A matrix W [out, in] is packed in panels of 64 output channels. In a panel, neighbouring inputs of a channel are
adjacent, as many as the processor's product adds (a run). The columns are in groups, which are those of the rows too:
[panel][group](weights [group / run][64][run], scales as bfloat16 [64]). Weights are stored as w + 128 where the product
takes unsigned ones, and 128 · Σx is subtracted again: `instructions`.
A matrix of blocks has four strips a panel: `block_product`. AMX multiplies sixteen rows at a time: `instructions.amx`.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils

from completion.model.int8.kernels.block_kinds import STRIP
from completion.model.int8.kernels.block_product import multiply_strip
from completion.model.int8.kernels.instructions import INSTRUCTIONS
from completion.model.int8.kernels.instructions.amx import AMX_ROWS, multiply_sixteen
from completion.model.int8.kernels.instructions.description import Instructions
from completion.model.int8.kernels.sizes import (
    ADD,
    CHANNELS,
    GATE,
    GATE_GELU,
    GELU,
    LANES,
    LINES,
    LOGITS,
    ROWS,
)
from completion.model.int8.kernels.vector import (
    FLOAT,
    FLOATS,
    INT,
    INTS,
    LONG,
    bfloats,
    call,
    choice,
    exp,
    floats,
    fma,
    larger,
    largest_of,
    load_floats,
    load_long,
    operation,
    pointer,
    splat,
    store_float,
    store_floats,
)
from drafting.machine_code.functions import inner

TILE_ROWS = INSTRUCTIONS.tile_rows
"""Maximum number of rows multiplied together."""
_HAS_AMX, _AMX_FROM = INSTRUCTIONS.has_amx, 3
"""Whether there is AMX, and from how many rows on it is quicker: 2 rows took as long without it, 4 rows 1.1 times."""
_SCALES_BYTES = 2 * CHANNELS
"""Bytes of a group's scales."""
_GELU_LINEAR = np.float32(2 * np.sqrt(2 / np.pi))
_GELU_CUBIC = np.float32(2 * np.sqrt(2 / np.pi) * 0.044715)


def emit_tile(
    rows: int,
    instructions: Instructions,
    b: ir.IRBuilder,
    x: ir.Value,
    stride: ir.Value,
    weights: ir.Value,
    depth: ir.Value,
    factors: ir.Value,
    factors_stride: ir.Value,
    out: ir.Value,
) -> None:
    """Emit the loops for a fixed number of rows: float32 [rows, 64] += scale_x · scales · (rows × a panel's group)."""
    channels, columns = instructions.tile_channels(rows), instructions.tile_columns
    scales = b.add(weights, b.mul(depth, LONG(CHANNELS)))
    empty = instructions.empty_sums(rows)
    sums = [cgutils.alloca_once(b, zero.type) for zero in empty]
    for first in range(0, CHANNELS, channels):
        for slot, zero in zip(sums, empty, strict=True):
            b.store(zero, slot)
        with cgutils.for_range(b, b.udiv(depth, LONG(columns)), intp=LONG) as loop:
            at = b.add(weights, b.mul(loop.index, LONG(columns * CHANNELS)))
            inputs = [
                b.add(b.add(x, b.mul(stride, LONG(row))), b.mul(loop.index, LONG(columns))) for row in range(rows)
            ]
            before = [b.load(slot) for slot in sums]
            after = instructions.add_columns(b, before, b.add(at, LONG(first * instructions.run)), inputs)
            for slot, total in zip(sums, after, strict=True):
                b.store(total, slot)
        widened = [bfloats(b, b.add(scales, LONG(2 * (first + n)))) for n in range(0, channels, LANES)]
        for row, totals in enumerate(instructions.tile_sums(b, [b.load(slot) for slot in sums], rows)):
            factor = b.add(factors, b.mul(factors_stride, LONG(row)))
            scale = splat(b, b.load(pointer(b, factor, 0, FLOAT), align=4), FLOATS)
            offset = splat(b, b.load(pointer(b, factor, 4, INT), align=4), INTS)
            for n, total in enumerate(totals):
                result = pointer(b, out, 4 * (row * CHANNELS + first + n * LANES), FLOATS)
                exact = b.fmul(b.sitofp(b.sub(total, offset), FLOATS), widened[n])
                b.store(call(b, "llvm.fma.v16f32", FLOATS, exact, scale, b.load(result, align=4)), result, align=4)


_tile = operation(types.void, *[types.int64] * 8)(
    choice([partial(emit_tile, rows, INSTRUCTIONS) for rows in range(1, TILE_ROWS + 1)])
)


@inner
def multiply_tile(
    rows: int, x: int, stride: int, weights: int, depth: int, factors: int, factors_stride: int, out: int
) -> None:
    """Add the product of 1 to tile_rows rows with one group of a panel to float32 sums.

    Args:
        rows: Number of rows.
        x: Address of the rows' group.  # int8 [rows, depth]
        stride: Bytes from one row's inputs to the next one's.
        weights: Address of the panel's group: its bytes [depth / run, 64, run], then its scales.
        depth: Number of inputs in the group.
        factors: Address of the first row's scale and offset; see `Inputs.factors_at`.
        factors_stride: Bytes from one row's factors to the next one's.
        out: Address of the sums.  # float32 [rows, 64]
    """
    _tile(rows - 1, x, stride, weights, depth, factors, factors_stride, out)


class Inputs(NamedTuple):
    """Quantised rows, by address: x ≈ scale · int8, with one scale for each group of a row's columns."""

    bytes_at: int  # int8 [rows, width]; or lines of 32 columns, see `block_product`
    factors_at: int  # [rows, groups] pairs: float32 scale, int32 weight_offset · Σ of the group's int8
    width: int
    group_width: int  # LINES for lines, which multiply a matrix of strips


class Matrix(NamedTuple):
    """Packed matrix, by address."""

    weights_at: int  # panels of groups, see above; or int64 [strips, 2]: a strip's address and kind
    scales_at: int  # float32 [panels · 64]
    bias_at: int  # float32 [panels · 64]


class Target(NamedTuple):
    """Destination of the results, by address."""

    kind: int  # one of the six kinds
    out_at: int  # float32 [rows, stride]
    stride: int
    largest_at: int  # float32 [rows, panels]: a panel's largest value; LOGITS only
    panels: int


@inner
def multiply_panel(rows: int, panel: int, inputs: Inputs, matrix: Matrix, target: Target, sums_at: int) -> None:
    """Multiply all rows by one panel, in tiles of equal height.  sums_at: a thread's scratch, float32 [32, 64]."""
    by_amx = uses_amx(rows, inputs.group_width)
    highest = AMX_ROWS if by_amx else ROWS if inputs.group_width == LINES else TILE_ROWS
    tiles = (rows + highest - 1) // highest
    first = 0
    for tile in range(tiles):
        height = (rows - first) // (tiles - tile)
        for at in range(sums_at, sums_at + 4 * CHANNELS * height, 4 * LANES):
            store_floats(at, floats(np.float32(0.0)))
        if inputs.group_width == LINES:
            _multiply_strips(first, height, panel, inputs, matrix, sums_at)
        else:
            _multiply_groups(first, height, panel, inputs, matrix, sums_at, by_amx)
        for row in range(height):
            finish_row(first + row, panel, matrix, target, sums_at + 4 * CHANNELS * row)
        first += height


@inner
def uses_amx(rows: int, group_width: int) -> bool:
    """Return whether AMX computes a product; the thread's tile registers are configured then."""
    return _HAS_AMX and group_width != LINES and rows >= _AMX_FROM


@inner
def _multiply_groups(
    first: int,
    rows: int,
    panel: int,
    inputs: Inputs,
    matrix: Matrix,
    sums_at: int,
    by_amx: bool,  # noqa: FBT001  (numba passes no keywords)
) -> None:
    """Add the products of a tile with an int8 panel to its sums."""
    groups, group_bytes = inputs.width // inputs.group_width, inputs.group_width * CHANNELS + _SCALES_BYTES
    weights, stride = matrix.weights_at + panel * groups * group_bytes, 8 * groups
    x, factors = inputs.bytes_at + first * inputs.width, inputs.factors_at + first * stride
    for group in range(groups):
        column, at = x + group * inputs.group_width, weights + group * group_bytes
        if by_amx:
            multiply_sixteen(rows, column, inputs.width, at, inputs.group_width, factors + 8 * group, stride, sums_at)
        else:
            multiply_tile(rows, column, inputs.width, at, inputs.group_width, factors + 8 * group, stride, sums_at)


@inner
def _multiply_strips(first: int, rows: int, panel: int, inputs: Inputs, matrix: Matrix, sums_at: int) -> None:
    """Add the products of a tile with a panel of four strips to its sums."""
    lines = inputs.bytes_at + 2 * first * inputs.width
    for n in range(CHANNELS // STRIP):
        strip = matrix.weights_at + 16 * (panel * (CHANNELS // STRIP) + n)
        multiply_strip(load_long(strip + 8), rows, lines, inputs.width, load_long(strip), sums_at + 4 * STRIP * n)


@inner
def finish_row(row: int, panel: int, matrix: Matrix, target: Target, sums_at: int) -> None:
    """Scale a row's sums by channel, add the bias, and write the result as the target's kind says.

    STORE writes the results. ADD adds them to the target. GATE writes silu(first half) · second half, for a panel of 32
    gate channels and their 32 up channels, GATE_GELU the same with gelu. GELU writes gelu(results). LOGITS writes the
    results and their maximum.
    """
    channel = panel * CHANNELS
    y0 = _scaled(sums_at, channel, matrix)
    y1 = _scaled(sums_at + 64, channel + LANES, matrix)
    y2 = _scaled(sums_at + 128, channel + 2 * LANES, matrix)
    y3 = _scaled(sums_at + 192, channel + 3 * LANES, matrix)
    if target.kind == GATE:
        out = target.out_at + 4 * (row * target.stride + channel // 2)
        store_floats(out, _silu(y0) * y2)
        store_floats(out + 64, _silu(y1) * y3)
        return
    if target.kind == GATE_GELU:
        out = target.out_at + 4 * (row * target.stride + channel // 2)
        store_floats(out, _gelu(y0) * y2)
        store_floats(out + 64, _gelu(y1) * y3)
        return
    out = target.out_at + 4 * (row * target.stride + channel)
    if target.kind == GELU:
        y0, y1, y2, y3 = _gelu(y0), _gelu(y1), _gelu(y2), _gelu(y3)
    if target.kind == ADD:
        y0, y1 = y0 + load_floats(out), y1 + load_floats(out + 64)
        y2, y3 = y2 + load_floats(out + 128), y3 + load_floats(out + 192)
    store_floats(out, y0)
    store_floats(out + 64, y1)
    store_floats(out + 128, y2)
    store_floats(out + 192, y3)
    if target.kind == LOGITS:
        largest = larger(larger(y0, y1), larger(y2, y3))
        store_float(target.largest_at + 4 * (row * target.panels + panel), largest_of(largest))


@njit(inline="always")
def _scaled(sums_at, channel, matrix):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    scale = load_floats(matrix.scales_at + 4 * channel)
    return fma(load_floats(sums_at), scale, load_floats(matrix.bias_at + 4 * channel))


@njit(inline="always")
def _silu(x):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Compute x · σ(x) = x / (1 + e^−x)."""
    return x / (floats(np.float32(1.0)) + exp(floats(np.float32(0.0)) - x))


@njit(inline="always")
def _gelu(x):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Compute x · (1 + tanh u) / 2 = x / (1 + e^−2u) with u = √(2/π) · (x + 0.044715 x³).

    Source: "Gaussian Error Linear Units (GELUs)", section 2.
    """
    double = x * fma(x * x, floats(_GELU_CUBIC), floats(_GELU_LINEAR))
    return x / (floats(np.float32(1.0)) + exp(floats(np.float32(0.0)) - double))
