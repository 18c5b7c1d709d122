"""Operations on single rows between the products: normalisation and quantisation."""

from __future__ import annotations

import numpy as np

from completion.model.int8.kernels.block_kinds import COLUMNS
from completion.model.int8.kernels.block_product import LINE_BYTES, MINUS_SUM, MINUS_SUM_BY_OFFSET, SCALE
from completion.model.int8.kernels.instructions import INSTRUCTIONS
from completion.model.int8.kernels.int8_product import Inputs
from completion.model.int8.kernels.sizes import LANES, LINES
from completion.model.int8.kernels.vector import (
    absolute,
    floats,
    fma,
    ints,
    larger,
    largest_of,
    load_floats,
    nearest_ints,
    store_bytes,
    store_float,
    store_floats,
    store_int,
    sum_of,
    sum_of_ints,
)
from drafting.arrays import IntArray
from drafting.machine_code.functions import inner

_MAX_INT8 = np.float32(127.0)
_WEIGHT_OFFSET = np.int32(INSTRUCTIONS.weight_offset)
_TINY = np.float32(1e-30)  # lower bound on a row's maximum, so that a row of zeros has a scale
_OFFSET_5, _OFFSET_6, _OFFSET_8 = MINUS_SUM_BY_OFFSET[16], MINUS_SUM_BY_OFFSET[32], MINUS_SUM_BY_OFFSET[128]


@inner
def normalise_row(x_at: int, weight_at: int, width: int, epsilon: float, out_at: int) -> None:
    """Compute x / √(mean(x²) + ε) · weight ("Root Mean Square Layer Normalization", equation 4).  # [width]."""
    squares = floats(np.float32(0.0))
    for at in range(0, 4 * width, 4 * LANES):
        x = load_floats(x_at + at)
        squares = fma(x, x, squares)
    mean = sum_of(squares) / np.float32(width)
    factor = floats(np.float32(1.0) / np.sqrt(mean + np.float32(epsilon)))
    for at in range(0, 4 * width, 4 * LANES):
        store_floats(out_at + at, load_floats(x_at + at) * factor * load_floats(weight_at + at))


@inner
def normalise_wholly(x_at: int, columns: IntArray, width: int, epsilon: float, centred: bool, out_at: int) -> None:  # noqa: FBT001
    """Compute a norm with what a family may add: x centred before, a bias after.

    Source: "Layer Normalization", equation 4, which is RMSNorm of the centred row.

    Args:
        x_at: Address of the row.  # [width]
        columns: Addresses of the weight and, in the third column, the bias, 0 if there is none.
        width: Width of the row.
        epsilon: Epsilon of the norm.
        centred: Whether the mean is removed.
        out_at: Address of the result, which may be x_at.  # [width]
    """
    source = x_at
    if centred:
        total = floats(np.float32(0.0))
        for at in range(0, 4 * width, 4 * LANES):
            total = total + load_floats(x_at + at)
        mean = floats(sum_of(total) / np.float32(width))
        for at in range(0, 4 * width, 4 * LANES):
            store_floats(out_at + at, load_floats(x_at + at) - mean)
        source = out_at
    normalise_row(source, columns[0], width, epsilon, out_at)
    if columns[2] != 0:
        add_row(columns[2], width, out_at)


@inner
def add_row(x_at: int, width: int, out_at: int) -> None:
    """Add a row to another one.  # [width] each."""
    for at in range(0, 4 * width, 4 * LANES):
        store_floats(out_at + at, load_floats(out_at + at) + load_floats(x_at + at))


@inner
def quantise_lines(x_at: int, row: int, width: int, lines_at: int) -> None:
    """Quantise a row to lines of 32 columns, each with its own scale; see `block_product`."""
    line = lines_at + 2 * row * width
    for at in range(x_at, x_at + 4 * width, 4 * COLUMNS):
        x0, x1 = load_floats(at), load_floats(at + 4 * LANES)
        greatest = largest_of(larger(larger(absolute(x0), absolute(x1)), floats(_TINY)))
        factor = floats(_MAX_INT8 / greatest)
        first, second = nearest_ints(x0 * factor), nearest_ints(x1 * factor)
        store_bytes(line, first)
        store_bytes(line + LANES, second)
        left, right = sum_of_ints(first), sum_of_ints(second)
        store_float(line + SCALE, greatest / _MAX_INT8)
        store_float(line + MINUS_SUM, np.float32(-(left + right)))
        store_int(line + _OFFSET_5, np.int32(-16) * (left + right))
        store_int(line + _OFFSET_8, np.int32(-128) * (left + right))
        store_int(line + _OFFSET_6, np.int32(-32) * left)
        store_int(line + _OFFSET_6 + 4, np.int32(-32) * right)
        line += LINE_BYTES


@inner
def quantise_row(x_at: int, row: int, inputs: Inputs) -> None:
    """Quantise each group of a row's columns: int8 = nearest(x · 127 / max |x|).

    Writes the scale max |x| / 127 and weight_offset · Σ int8 of each group as well.
    """
    if inputs.group_width == LINES:
        quantise_lines(x_at, row, inputs.width, inputs.bytes_at)
        return
    groups = inputs.width // inputs.group_width
    for group in range(groups):
        column = group * inputs.group_width
        start, end = x_at + 4 * column, x_at + 4 * (column + inputs.group_width)
        largest = floats(_TINY)
        for at in range(start, end, 4 * LANES):
            largest = larger(absolute(load_floats(at)), largest)
        greatest = largest_of(largest)
        factor = floats(_MAX_INT8 / greatest)
        total = ints(np.int32(0))
        out_at = inputs.bytes_at + row * inputs.width + column
        for at in range(start, end, 4 * LANES):
            values = nearest_ints(load_floats(at) * factor)
            store_bytes(out_at + (at - start) // 4, values)
            total = total + values
        factor_at = inputs.factors_at + 8 * (row * groups + group)
        store_float(factor_at, greatest / _MAX_INT8)
        store_int(factor_at + 4, _WEIGHT_OFFSET * sum_of_ints(total))
