"""Each generation of x86 computes the same bits, as far as this processor runs its instructions."""

from functools import partial

import numpy as np
import pytest
from numba import njit, types

from completion.model.int8.gguf_blocks import READERS, laid_out
from completion.model.int8.kernels.block_kinds import KINDS
from completion.model.int8.kernels.block_product import LINE_BYTES, StripProduct
from completion.model.int8.kernels.instructions import INSTRUCTIONS
from completion.model.int8.kernels.instructions.amx import AMX_ROWS, configure, multiply_sixteen, release
from completion.model.int8.kernels.instructions.x86 import X86
from completion.model.int8.kernels.int8_product import emit_tile
from completion.model.int8.kernels.processor import FEATURES, ON_ARM
from completion.model.int8.kernels.row_operations import quantise_lines
from completion.model.int8.kernels.vector import operation
from completion.model.transformer import has_int8_instructions
from tests.completion.model.int8.test_block_product import WIDTH, raw_blocks

pytestmark = pytest.mark.skipif(ON_ARM or not has_int8_instructions(), reason="this processor lacks AVX2")
_AVX2 = frozenset({"avx2", "fma", "f16c"})
_AVX512 = _AVX2 | {"avx512f", "avx512bw", "avx512vl", "avx512dq"}
NEWER = {"AVX-VNNI": _AVX2 | {"avxvnni"}, "AVX-512": _AVX512, "VNNI": _AVX512 | {"avx512vnni"}}
DEPTH = 128  # columns of a group of int8 weights


@pytest.fixture(params=NEWER)
def newer(request):
    """A generation after AVX2 that this processor runs: the 256-bit products of AVX-VNNI are a part of AVX-512's."""
    wanted = NEWER[request.param]
    found = FEATURES | ({"avxvnni"} if {"avx512vnni", "avx512vl"} <= FEATURES else set())
    if not wanted <= found:
        pytest.skip(f"this processor lacks {', '.join(sorted(wanted - found))}")
    return X86(wanted)


def strip_sums(generation, kind, x, *, one_row):
    """Return the product of rows with a strip.  # [rows, 16]."""
    emit = partial(StripProduct(kind, generation).emit, one_row=one_row)
    multiply = operation(types.void, *[types.int64] * 6)(emit)

    @njit
    def run(x, lines, strip, units, out):
        for row in range(len(x)):
            quantise_lines(x[row].ctypes.data, row, x.shape[1], lines.ctypes.data)
        multiply(len(x), lines.ctypes.data, 2 * x.shape[1], strip.ctypes.data, units, out.ctypes.data)

    out = np.zeros((len(x), 64), np.float32)
    lines = np.zeros((len(x), WIDTH // 32, LINE_BYTES), np.uint8)
    run(x, lines, laid_out(READERS[kind.name](raw_blocks(kind.name)), kind)[0], WIDTH // kind.unit, out)
    return out[:, :16]


def aligned(parts):
    """Join arrays at an address that is a multiple of 64, as panels are."""
    joined = np.concatenate(parts)
    room = np.zeros(len(joined) + 64, np.uint8)
    found = room[-room.ctypes.data % 64 :][: len(joined)]
    found[:] = joined
    return found


def tile_sums(generation, rows, depth=DEPTH, *, by_amx=False):
    """Return the product of rows with a group of a panel of int8 weights.  # [rows, 64]."""
    rng = np.random.default_rng(rows)
    x = np.full((AMX_ROWS, depth), 99, np.int8)  # AMX reads sixteen rows
    x[:rows] = rng.integers(-127, 128, (rows, depth))
    values = rng.integers(-127, 128, (depth // 4, 64, 4)).astype(np.int8)
    scales = rng.normal(size=64).astype(np.float32).view(np.uint16)[1::2].copy()  # their upper halves are bfloat16
    group = aligned([(values.astype(np.int16) + 128).astype(np.uint8).ravel(), scales.view(np.uint8)])
    factors = np.zeros((rows, 2), np.int32)
    factors[:, 0] = np.full(rows, 0.5, np.float32).view(np.int32)
    factors[:, 1] = 128 * x[:rows].sum(axis=1, dtype=np.int32)
    multiply = operation(types.void, *[types.int64] * 7)(partial(emit_tile, rows, generation))

    @njit
    def run(x, group, factors, out):
        multiply(x.ctypes.data, x.shape[1], group.ctypes.data, x.shape[1], factors.ctypes.data, 8, out.ctypes.data)

    @njit
    def run_by_amx(x, group, factors, out):
        at, stride, factors_at = x.ctypes.data, x.shape[1], factors.ctypes.data
        configure(0)
        multiply_sixteen(len(out), at, stride, group.ctypes.data, stride, factors_at, 8, out.ctypes.data)
        release(0)

    out = np.zeros((rows, 64), np.float32)
    (run_by_amx if by_amx else run)(x, group, factors, out)
    return out


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_products_with_blocks_have_the_bits_of_avx2(newer, kind, rows):
    x = np.random.default_rng(rows).normal(size=(rows, WIDTH)).astype(np.float32)
    expected = strip_sums(X86(_AVX2), kind, x, one_row=rows == 1)
    assert np.abs(expected).min() > 0
    np.testing.assert_array_equal(strip_sums(newer, kind, x, one_row=rows == 1), expected)


def test_products_with_int8_weights_have_the_bits_of_avx2(newer):
    for rows in range(1, newer.tile_rows + 1):
        expected = tile_sums(X86(_AVX2), rows)
        assert np.abs(expected).min() > 0
        np.testing.assert_array_equal(tile_sums(newer, rows), expected)


@pytest.mark.skipif(not INSTRUCTIONS.has_amx, reason="this processor lacks AMX")
@pytest.mark.parametrize("rows", [1, 2, 7, AMX_ROWS])
@pytest.mark.parametrize("depth", [128, 112, 48])  # whole tiles of 64 columns, a rest, only a rest
def test_products_by_amx_have_the_bits_of_avx2(rows, depth):
    expected = tile_sums(X86(_AVX2), rows, depth)
    assert np.abs(expected).min() > 0
    np.testing.assert_array_equal(tile_sums(INSTRUCTIONS, rows, depth, by_amx=True), expected)
