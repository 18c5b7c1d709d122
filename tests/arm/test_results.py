"""The results that emulated Arm processors are compared by can be computed, which only `make test-arm` does in full."""

import numpy as np
import pytest

from completion.model.transformer import has_int8_instructions
from tests.arm.results import PARENTS, logits
from tests.completion.model.conftest import save_variant


@pytest.mark.skipif(not has_int8_instructions(), reason="this processor lacks AVX2")
def test_a_model_has_logits_of_a_prefill_a_tree_and_two_chains(tmp_path):
    folder, _ = save_variant("qwen2", tmp_path / "qwen2.int8")
    found = logits(folder, "int8")
    assert len(found) == 37 + len(PARENTS) + 6 + 1
    assert np.isfinite(found).all()
