"""The simulated cache in 8 bits: what no rounded key or value reaches is exact, and the rest is close to it."""

import numpy as np
import pytest

from benchmarks.fidelity.rounded_cache import channel_means, rounded_logits
from completion.model.int8.packed_weights import load_packed
from completion.model.int8.quantized import QuantizedTransformer
from completion.model.transformer import has_int8_instructions
from tests.completion.model.rows import rows_of, slots, tokens

pytestmark = pytest.mark.skipif(not has_int8_instructions(), reason="this processor lacks AVX2")


def test_only_what_sees_rounded_keys_and_values_differs_and_little(tiny_qwen, tmp_path):
    model, text = QuantizedTransformer(load_packed(tiny_qwen[0], tmp_path, "int8"), 2), tokens(160)
    exact = rows_of(model.prefill(text, slots(160), model.new_cache(160), range(160)), 160)
    rounded = rounded_logits(model, text, channel_means(model, text))
    differences = np.abs(rounded[:, : exact.shape[1]] - exact).max(axis=1)
    assert not differences[:64].any()
    assert differences[64:].any()
    assert np.median(differences[64:]) < 0.1 * np.abs(exact).max()  # a random model's attention can flip in single rows
