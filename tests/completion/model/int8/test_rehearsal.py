"""What a rehearsal compiles is all that a model's warm-up calls."""

import pytest

from completion.model.int8 import cache, quantized, rehearsal
from completion.model.int8.packed_weights import load_packed
from completion.model.int8.quantized import QuantizedTransformer
from completion.model.transformer import has_int8_instructions
from tests.completion.model.int8.test_quantized import in_blocks

KERNELS = (quantized.run_layers, cache.move_slots, cache.compress_slots, cache.expand_slots)


def versions():
    return [list(each.compiled.overloads) for each in KERNELS]


@pytest.mark.skipif(not has_int8_instructions(), reason="this processor lacks AVX2")
@pytest.mark.parametrize("form", ["int8", "q4"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_model_calls_what_was_compiled_without_one(tiny_qwen, tmp_path, form, threads):
    folder = tiny_qwen[0] if form == "int8" else in_blocks(tiny_qwen[0], tmp_path / "blocks")
    rehearsal.rehearse()
    rehearsed = versions()

    QuantizedTransformer(load_packed(folder, tmp_path, form), threads).warm_up()

    assert all(rehearsed)
    assert versions() == rehearsed
