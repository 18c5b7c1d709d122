"""Products with llama.cpp's blocks equal float arithmetic of the dequantised blocks, and never depend on the batch."""

import gguf
import numpy as np
import pytest
from numba import njit

from completion.model.int8.gguf_blocks import READERS, laid_out
from completion.model.int8.kernels.block_kinds import KIND_NUMBERS, KINDS, STRIP
from completion.model.int8.kernels.block_product import LINE_BYTES, SCALE, multiply_strip
from completion.model.int8.kernels.row_operations import quantise_lines
from completion.model.int8.kernels.sizes import ROWS
from completion.model.transformer import has_int8_instructions

pytestmark = pytest.mark.skipif(not has_int8_instructions(), reason="this processor lacks AVX2")
WIDTH = 512
_HALFS = {"Q5_0": [0], "Q8_0": [0], "Q4_K": [0, 1], "Q6_K": [104]}  # where a block has half-precision factors
_BLOCKS = {"Q5_0": 22, "Q8_0": 34, "Q4_K": 144, "Q6_K": 210}  # bytes of a block


def raw_blocks(name, seed=0):
    """Return blocks with every byte random but the factors, as a GGUF file has them.  # [16, bytes]."""
    rng = np.random.default_rng(seed)
    count = WIDTH // gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]][0]
    raw = rng.integers(0, 256, (STRIP, count, _BLOCKS[name]), dtype=np.uint8)
    halves = raw.view(np.float16)
    for place in _HALFS[name]:
        halves[..., place] = rng.normal(size=(STRIP, count)) / 100
    return raw.reshape(STRIP, -1)


@njit
def multiply(kind, x, lines, strip, out):
    for row in range(len(x)):
        quantise_lines(x[row].ctypes.data, row, x.shape[1], lines.ctypes.data)
    multiply_strip(kind, len(x), lines.ctypes.data, x.shape[1], strip.ctypes.data, out.ctypes.data)


def product(name, x):
    """Return the kernel's results, and the rows as it quantised them.  # [rows, 16], [rows, width]."""
    number = KIND_NUMBERS[name]
    strip = laid_out(READERS[name](raw_blocks(name)), KINDS[number])[0]
    lines = np.zeros((len(x), WIDTH // 32, LINE_BYTES), np.uint8)
    out = np.zeros((len(x), 64), np.float32)
    multiply(number, x, lines, strip, out)
    scales = lines[..., SCALE : SCALE + 4].copy().view(np.float32).astype(np.float64)
    return out[:, :STRIP], (lines[..., :32].view(np.int8) * scales).reshape(len(x), WIDTH)


@pytest.mark.parametrize("rows", [1, 2, 7, ROWS])
@pytest.mark.parametrize("name", KIND_NUMBERS)
def test_products_equal_float_arithmetic_of_the_dequantised_blocks(name, rows):
    x = np.random.default_rng(rows).normal(size=(rows, WIDTH)).astype(np.float32)
    found, quantised = product(name, x)
    weights = gguf.dequantize(raw_blocks(name), gguf.GGMLQuantizationType[name]).astype(np.float64)
    magnitude = np.abs(quantised) @ np.abs(weights).T  # what rounding errors are relative to
    assert np.all(np.abs(found - quantised @ weights.T) <= 2e-6 * magnitude)
    assert np.abs(quantised - x).max() <= np.abs(x).max() / 253


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("name", KIND_NUMBERS)
def test_the_largest_inputs_and_values_do_not_overflow(name, sign):
    x = np.full((2, WIDTH), sign, np.float32)
    found, quantised = product(name, x)
    weights = gguf.dequantize(raw_blocks(name), gguf.GGMLQuantizationType[name]).astype(np.float64)
    np.testing.assert_allclose(found, quantised @ weights.T, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("name", KIND_NUMBERS)
def test_a_row_has_bit_for_bit_the_same_result_in_every_batch(name):
    x = np.random.default_rng(3).normal(size=(ROWS, WIDTH)).astype(np.float32)
    together = product(name, x)[0]
    for first, count in ((0, 1), (5, 1), (2, 2), (3, 17), (31, 1)):
        alone = product(name, np.ascontiguousarray(x[first : first + count]))[0]
        np.testing.assert_array_equal(alone, together[first : first + count])
