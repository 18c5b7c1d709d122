"""Rounds a matrix to the blocks of the block kernels, with scales that lose the least of its products.

Of several scales of a block, each with the values that it rounds to, the one is taken whose weighted squared error is
smallest after the scale was fitted to these values by least squares. A weight counts as much as its column's inputs
are large: the error of a product is that of its weights times the inputs. Source of the idea and of the kinds: the
k-quants of llama.cpp and its importance matrix.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from completion.model.int8.gguf_blocks import Blocks
from completion.model.int8.kernels.block_kinds import BlockKind
from drafting.arrays import FloatArray
from drafting.compiled import compiled, compiled_within

_TRIED = 9
"""Scales are tried up to this many steps larger and smaller than the one that just spans a block's values."""
_STEP = 0.1
"""Change of the largest value from one tried scale to the next."""
_HALF = np.finfo(np.float16)


def quantised(weight: FloatArray, importance: FloatArray, kind: BlockKind) -> Blocks:
    """Return the rows of a matrix as blocks.

    Args:
        weight: Whole units of `kind`.  # [rows, columns]
        importance: Mean square of each column's inputs, more than 0.  # [columns]
        kind: Q5_0, Q8_0, Q4_K or Q6_K.
    """
    units = weight.shape[1] // kind.unit
    rows = np.ascontiguousarray(weight, np.float32).reshape(len(weight), units, kind.unit)
    counts = np.ascontiguousarray(importance, np.float32).reshape(units, kind.unit)
    if kind.name == "Q4_K":
        return _q4_k(rows, counts)
    return _q6_k(rows, counts) if kind.name == "Q6_K" else _plain(rows, counts, kind)


def _plain(rows: FloatArray, importance: FloatArray, kind: BlockKind) -> Blocks:
    """Round blocks with a half-precision scale each."""
    limit = 1 << (kind.bits - 1)
    scales = _scales(rows, importance, limit)
    factors = _halves(scales)
    values = _rounded(rows, factors.astype(np.float32)[..., None], 0.0, -limit, limit - 1) + kind.offset
    whole = values.astype(np.int16).astype(np.uint8)  # on Arm, a float below 0 becomes 0 in uint8
    return Blocks(whole.reshape(len(rows), -1), factors[..., None], np.zeros((len(rows), 0), np.uint8))


def _q6_k(rows: FloatArray, importance: FloatArray) -> Blocks:
    blocks, counts = rows.reshape(len(rows), -1, 16), importance.reshape(-1, 16)
    scales = _scales(blocks, counts, 32).reshape(*rows.shape[:2], 16)
    largest = np.take_along_axis(scales, np.abs(scales).argmax(axis=2)[..., None], axis=2)[..., 0]
    factors = _halves(largest / np.float32(-128))
    wide = factors.astype(np.float32)[..., None]
    whole = _rounded(scales, wide, 0.0, -128, 127)
    values = _rounded(rows.reshape(*rows.shape[:2], 16, 16), (wide * whole)[..., None], 0.0, -32, 31) + 32
    return Blocks(
        values.astype(np.uint8).reshape(len(rows), -1), factors[..., None], whole.astype(np.int8).view(np.uint8)
    )


def _q4_k(rows: FloatArray, importance: FloatArray) -> Blocks:
    blocks, counts = rows.reshape(len(rows), -1, 32), importance.reshape(-1, 32)
    scales, minima = (each.reshape(*rows.shape[:2], 8) for each in _scales_and_minima(blocks, counts))
    largest = np.stack([scales.max(axis=2), minima.max(axis=2)], axis=-1).astype(np.float32)
    factors = _halves(largest / np.float32(63))
    wide = factors.astype(np.float32)
    whole = _rounded(scales, wide[..., :1], 0.0, 0, 63)
    whole_minima = _rounded(minima, wide[..., 1:], 0.0, 0, 63)
    scale, minimum = (wide[..., :1] * whole)[..., None], (wide[..., 1:] * whole_minima)[..., None]
    values = _rounded(rows.reshape(*rows.shape[:2], 8, 32), scale, minimum, 0, 15)
    pairs = np.stack([whole, whole_minima], axis=-1).astype(np.uint8)
    return Blocks(values.astype(np.uint8).reshape(len(rows), -1), factors, pairs)


def _halves(values: FloatArray) -> npt.NDArray[np.float16]:
    """Return the nearest half-precision numbers; the largest one for larger values."""
    return values.clip(_HALF.min, _HALF.max).astype(np.float16)


def _rounded(
    values: FloatArray, scale: FloatArray, minimum: FloatArray | float, lowest: int, highest: int
) -> FloatArray:
    """Return the nearest whole numbers of (values + minimum) / scale within bounds; 0 where the scale is 0."""
    whole = np.divide(values + minimum, scale, out=np.zeros_like(values), where=scale != 0)
    found: FloatArray = np.rint(whole, out=whole).clip(lowest, highest, out=whole)
    return found


@compiled
def _scales(blocks: FloatArray, importance: FloatArray, limit: int) -> FloatArray:
    """Return the scale of each block whose values are -limit .. limit - 1; it may be negative.

    blocks: # [rows, blocks, width]; importance of their columns: # [blocks, width]; → # [rows, blocks]
    """
    rows, count, width = blocks.shape
    scales = np.zeros((rows, count), np.float32)
    counts = np.empty(width, np.float32)
    for row in range(rows):
        for block in range(count):
            x = blocks[row, block]
            largest = np.float32(0.0)
            for value in x:
                if abs(value) > abs(largest):
                    largest = value
            if largest == 0:
                continue
            _weigh(x, importance[block], counts)
            best = np.float32(-1.0)
            for step in range(-_TRIED, _TRIED + 1):
                inverse = -np.float32(limit + _STEP * step) / largest
                products, squares = np.float32(0.0), np.float32(0.0)
                for n in range(width):
                    value = np.rint(inverse * x[n])
                    value = min(max(value, np.float32(-limit)), np.float32(limit - 1))
                    products += counts[n] * x[n] * value
                    squares += counts[n] * value * value
                # Σ c (x − s·v)² is least at s = Σ c·x·v / Σ c·v², where it is Σ c·x² − (Σ c·x·v)² / Σ c·v²
                if squares > 0 and products * products > best * squares:
                    best, scales[row, block] = products * products / squares, products / squares
    return scales


@compiled
def _scales_and_minima(blocks: FloatArray, importance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the scale and the minimum of each block whose weights are scale · value − minimum, value 0 .. 15.

    The shapes are those of `_scales`.
    """
    rows, count, width = blocks.shape
    scales, minima = np.zeros((rows, count), np.float32), np.zeros((rows, count), np.float32)
    counts = np.empty(width, np.float32)
    for row in range(rows):
        for block in range(count):
            x = blocks[row, block]
            least, most = min(np.float32(0.0), x.min()), x.max()
            if most <= least:
                minima[row, block] = -least
                continue
            _weigh(x, importance[block], counts)
            total, total_x = np.float32(0.0), np.float32(0.0)
            for n in range(width):
                total += counts[n]
                total_x += counts[n] * x[n]
            best = np.float32(np.inf)
            for step in range(-_TRIED, 2 * _TRIED + 1):
                inverse = np.float32(15 + _STEP * step) / (most - least)
                error, scale, minimum = _fitted(x, counts, total, total_x, least, inverse)
                if scale > 0 and error < best:
                    best, scales[row, block], minima[row, block] = error, scale, minimum
    return scales, minima


@compiled_within
def _fitted(
    x: FloatArray, counts: FloatArray, total: np.float32, total_x: np.float32, least: np.float32, inverse: np.float32
) -> tuple[np.float32, np.float32, np.float32]:
    """Return the best scale and minimum for the values that one tried scale gives, and their error, less Σ c·x².

    Args:
        x: Weights of a block.
        counts: How much each one's error counts.
        total: Σ c.
        total_x: Σ c·x.
        least: Least weight, at most 0.
        inverse: The tried scale, inverted.
    """
    values, squares, products = np.float32(0.0), np.float32(0.0), np.float32(0.0)
    for n in range(len(x)):
        value = min(max(np.rint(inverse * (x[n] - least)), np.float32(0.0)), np.float32(15.0))
        values += counts[n] * value
        squares += counts[n] * value * value
        products += counts[n] * x[n] * value
    # Σ c (s·v − m − x)² is least where both derivatives are 0, or at m = 0 where m would be negative.
    scale, minimum = products / squares, np.float32(0.0)
    determinant = total * squares - values * values
    if determinant > 0 and squares * total_x < values * products:
        scale = (total * products - total_x * values) / determinant
        minimum = (values * products - squares * total_x) / determinant
    error = scale * scale * squares + minimum * minimum * total
    return error + 2 * (minimum * total_x - scale * minimum * values - scale * products), scale, minimum


@compiled_within
def _weigh(x: FloatArray, importance: FloatArray, counts: FloatArray) -> None:
    """Set how much each weight's error counts: as its inputs, and more for a large weight, which products depend on."""
    mean = np.float32(0.0)
    for value in x:
        mean += value * value
    mean /= len(x)
    for n in range(len(x)):
        counts[n] = importance[n] * np.sqrt(2 * mean + x[n] * x[n])
