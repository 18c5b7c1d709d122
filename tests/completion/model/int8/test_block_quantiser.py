"""Matrices are rounded to blocks with little error, least where inputs are large."""

import gguf
import numpy as np
import pytest

from completion.model.int8.block_quantiser import quantised
from completion.model.int8.kernels.block_kinds import KIND_NUMBERS, KINDS

pytestmark = pytest.mark.parametrize("name", KIND_NUMBERS)
MOST = {"Q5_0": 0.047, "Q8_0": 0.006, "Q4_K": 0.082, "Q6_K": 0.021}
"""Root mean square error of normal numbers, over theirs."""
ONES = np.ones(512, np.float32)


def matrix(seed=0, rows=32):
    return np.random.default_rng(seed).normal(size=(rows, 512)).astype(np.float32)


def rounded(weight, importance, name):
    """Return a matrix as its blocks have it."""
    kind = KINDS[KIND_NUMBERS[name]]
    values, factors, scales = quantised(weight, importance, kind)
    units = factors.shape[1]
    whole = values.view(np.int8) if kind.bits == 8 else values.astype(np.float32) - kind.offset
    whole, factors = whole.reshape(len(weight), units, -1, kind.block), factors.astype(np.float32)[:, :, None]
    scale = factors[..., :1]
    if name == "Q6_K":
        scale = scale * scales.view(np.int8).reshape(len(weight), units, 16, 1)
    if name == "Q4_K":
        both = factors * scales.reshape(len(weight), units, 8, 2)
        return (both[..., :1] * whole - both[..., 1:]).reshape(weight.shape)
    return (scale * whole).reshape(weight.shape)


def error(weight, found, importance=ONES):
    return np.sqrt((importance * (weight - found) ** 2).sum() / (importance * weight**2).sum())


def test_the_error_is_small(name):
    weight = matrix()
    assert error(weight, rounded(weight, ONES, name)) < MOST[name]


def test_searched_scales_lose_less_than_those_that_span_a_block(name):
    weight = matrix()
    if name in {"Q5_0", "Q8_0"}:
        kind = gguf.GGMLQuantizationType[name]
        plain = gguf.dequantize(gguf.quantize(weight, kind), kind)
    else:
        width, steps = KINDS[KIND_NUMBERS[name]].block, 2 ** KINDS[KIND_NUMBERS[name]].bits - 1
        blocks = weight.reshape(-1, width)
        least, most = blocks.min(axis=1, keepdims=True), blocks.max(axis=1, keepdims=True)
        if name == "Q6_K":
            most = np.abs(blocks).max(axis=1, keepdims=True)
            least = -most
        plain = np.rint((blocks - least) / (most - least) * steps) / steps * (most - least) + least
        plain = plain.reshape(weight.shape)
    assert error(weight, rounded(weight, ONES, name)) < error(weight, plain)


def test_a_column_with_large_inputs_loses_less(name):
    weight, importance = matrix(), ONES.copy()
    importance[::8] = 100
    with_importance, without = (rounded(weight, each, name) for each in (importance, ONES))
    assert error(weight, with_importance, importance) < 0.95 * error(weight, without, importance)


def test_zeros_stay_zeros_and_tiny_and_large_weights_stay_finite(name):
    weight = matrix()
    weight[0] = 0
    weight[1, :256] = 0
    weight[2] *= 1e-30
    weight[3] *= 1e6
    weight[4] = 3
    weight[5] = -3
    found = rounded(weight, ONES, name)
    assert not found[0].any()
    assert not found[1, :256].any()
    assert np.isfinite(found).all()
    assert np.abs(found[2]).max() <= 1e-6
    np.testing.assert_allclose(found[4:6], weight[4:6], rtol=0.01)


def test_rows_are_rounded_each_by_itself(name):
    weight = matrix()
    np.testing.assert_array_equal(rounded(weight[5:6], ONES, name), rounded(weight, ONES, name)[5:6])
