"""The results that emulated Arm processors are compared by can be computed, which only `make test-arm` does in full."""

import numpy as np
import pytest

from completion.model.int8.kernels.block_kinds import KINDS
from completion.model.transformer import has_int8_instructions
from tests.arm.results import PARENTS, logits, products
from tests.completion.model.conftest import save_variant
from tests.completion.model.int8.test_block_product import raw_blocks

pytestmark = pytest.mark.skipif(not has_int8_instructions(), reason="this processor lacks AVX2")


def test_a_model_has_logits_of_a_prefill_a_tree_and_two_chains(tmp_path):
    folder, _ = save_variant("qwen2", tmp_path / "qwen2.int8")
    found = logits(folder, "int8")
    assert len(found) == 37 + len(PARENTS) + 6 + 1
    assert np.isfinite(found).all()


def test_matrices_of_int8_and_of_blocks_have_products_of_one_to_seventeen_rows(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {"int8.x": rng.normal(size=(17, 64)), "int8 64": rng.normal(size=(64, 64))}
    arrays["blocks.x"] = rng.normal(size=(17, 512))
    arrays = {name: array.astype(np.float32) for name, array in arrays.items()}
    for kind in KINDS:
        arrays[f"blocks {kind.name}"] = np.concatenate([raw_blocks(kind.name, seed) for seed in range(4)])
    np.savez(tmp_path / "inputs.npz", **arrays)
    found = dict(products(np.load(tmp_path / "inputs.npz")))
    assert len(found) == (1 + len(KINDS)) * (15 + 2 * 6)
    assert all(np.isfinite(product).all() for product in found.values())
