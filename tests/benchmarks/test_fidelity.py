"""The figures of benchmarks.fidelity compare with transformers in float32."""

import numpy as np

from benchmarks.fidelity.__main__ import compare, figures
from benchmarks.fidelity.tally import normalised
from tests.completion.model.rows import tokens


def test_the_excess_of_a_path_is_over_the_reference_and_over_no_other_path():
    logits = np.random.default_rng(0).normal(size=(20, 384)).astype(np.float32)
    paths = {
        "transformers fp32": lambda _window: normalised(logits),
        "bf16": lambda _window: normalised(np.zeros_like(logits)),
        "int8": lambda _window: normalised(logits),
    }
    found = compare(paths, {"python": [tokens(20)], "rust": [tokens(20, seed=1)]})
    same = figures(found["int8"], found["transformers fp32"])
    assert {key: same[key] for key in same if "nll" in key or "kl" in key} == dict.fromkeys(
        ["nll_excess_python", "kl_python", "nll_excess_rust", "kl_rust", "worst_nll_excess"], 0
    )
    flat = figures(found["bf16"], found["transformers fp32"])
    assert flat["worst_nll_excess"] == max(flat["nll_excess_python"], flat["nll_excess_rust"])
    assert flat["nll_excess_python"] == found["bf16"]["python"]["nll"] - found["transformers fp32"]["python"]["nll"]
