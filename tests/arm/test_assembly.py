"""The code for Arm processors uses their products of bytes, keeps sums in registers, and has no more instructions."""

import pytest

from completion.model.int8.kernels.block_kinds import KINDS
from tests.arm.assembly import PROCESSORS, strip_loop, tile_loop


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
@pytest.mark.parametrize("processor", PROCESSORS)
def test_loops_of_int8_panels_load_multiply_and_count(processor, rows):
    loop = tile_loop(processor, rows)
    product = "smmla" if processor == "neoverse-v1" and rows > 1 else "sdot"
    pairs = -(-rows // 2) * 2 if product == "smmla" else rows  # a third row is multiplied twice
    assert loop.instructions[product] == loop.products * pairs // rows // (32 if product == "smmla" else 16)
    assert not loop.spills
    assert loop.per_product <= (0.11 if rows == 1 else 0.085 if product == "sdot" else 0.07)


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
@pytest.mark.parametrize("processor", PROCESSORS)
def test_loops_of_blocks_widen_once_for_all_rows(processor, kind):
    one, more = strip_loop(processor, kind, one_row=True), strip_loop(processor, kind, one_row=False)
    assert one.instructions["sdot"] == 32
    assert more.instructions["smmla" if processor == "neoverse-v1" else "sdot"] == 16
    assert more.spills <= 2
    assert one.per_product <= 0.39
    assert more.per_product <= 0.18
