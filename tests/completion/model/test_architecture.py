"""A config is read as transformers reads it, in old and new spellings; what the forward pass cannot do is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoConfig

from completion.errors import ModelDamagedError, ModelError, UnsupportedModelError
from completion.model.architecture import MAX_POSITIONS, architecture_of, read_architecture
from completion.model.rotary import RotaryTables
from completion.model.tokenizer import CodeTokenizer

SIZES = {
    "vocab_size": 512,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 8,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
}
GRANITE_4 = {"num_local_experts": 0, "position_embedding_type": "rope", "layer_types": ["full_attention"] * 8}
UNEVEN = json.dumps({"model_type": "llama", **SIZES, "num_attention_heads": 3, "hidden_size": 192})
LINEAR = {"type": "linear", "factor": 4.0}
HEADLESS = json.dumps({"model_type": "llama", **SIZES, "num_attention_heads": 0})
SPARSE = [
    ("qwen2", {"rope_theta": 1e6}),
    ("qwen2", {"use_sliding_window": True, "sliding_window": 64, "max_window_layers": 5}),
    ("qwen3", {}),
    ("llama", {"rope_theta": 1e5, "rope_scaling": LINEAR}),
    ("mistral", {}),
    ("mistral", {"sliding_window": None}),
    ("granite", {"logits_scaling": 8.0}),
    ("granitemoehybrid", GRANITE_4 | {"shared_intermediate_size": 192, "mamba_n_heads": 8}),
    ("starcoder2", {}),
    ("starcoder2", {"sliding_window": 512, "norm_epsilon": 1e-6}),
    ("gemma", {}),
    ("gemma3_text", {"sliding_window": 512}),
    (
        "gemma3_text",
        {"rope_theta": 5e5, "rope_local_base_freq": 2e4, "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
    ),
]


@pytest.mark.parametrize(("model_type", "values"), SPARSE)
def test_a_config_with_few_values_means_what_transformers_takes_it_for(model_type, values):
    given = {"model_type": model_type, **SIZES, **values}
    complete = AutoConfig.for_model(model_type, **SIZES, **values).to_dict()
    assert architecture_of(given) == architecture_of(complete)


@pytest.mark.parametrize(
    ("model_type", "values", "named"),
    [
        ("gpt2", {}, "gpt2"),
        ("llama", {"hidden_act": "relu"}, "relu"),
        ("gemma3_text", {"attn_logit_softcapping": 50.0}, "attn_logit_softcapping"),
        ("granitemoehybrid", GRANITE_4 | {"num_local_experts": 8}, "num_local_experts"),
        ("granitemoehybrid", GRANITE_4 | {"layer_types": ["mamba"] * 8}, "layer_types"),
        ("llama", {"partial_rotary_factor": 0.5}, "Partial rotary"),
    ],
)
def test_what_no_forward_pass_of_ours_does_is_refused_by_name(model_type, values, named):
    with pytest.raises(UnsupportedModelError, match=named):
        architecture_of({"model_type": model_type, **SIZES, **values})


def test_positions_are_bounded():
    given = {"model_type": "llama", **SIZES, "max_position_embeddings": 1 << 20}
    assert architecture_of(given).max_positions == MAX_POSITIONS


@pytest.mark.parametrize("text", ["{", "[]", '{"model_type": "llama"}', HEADLESS, UNEVEN])
def test_a_damaged_config_is_named(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ModelDamagedError, match=r"config\.json"):
        read_architecture(tmp_path)


KEYS = (*SIZES, "head_dim", "rms_norm_eps", "rope_theta", "sliding_window", "attention_multiplier", "rope_scaling")
WRONG = st.one_of(
    st.sampled_from([0, -1, 3, 1 << 40, 1e400, -0.5, float("nan"), None, True, "", "1", [], {}, [[]], {"factor": 0}]),
    st.integers(-(1 << 70), 1 << 70),
    st.floats(),
    st.fixed_dictionaries(
        {"rope_type": st.sampled_from(["yarn", "llama3", "linear"])}, optional={"factor": st.floats()}
    ),
)


@given(
    st.sampled_from(["llama", "qwen2", "mistral", "gemma3_text", "granite", "starcoder2"]),
    st.dictionaries(st.sampled_from(KEYS), WRONG, min_size=1, max_size=2),
)
def test_whatever_numbers_a_config_has_it_is_refused_or_kernels_can_use_them(tmp_path_factory, model_type, values):
    folder = tmp_path_factory.mktemp("model")
    given_sizes = {"model_type": model_type, **SIZES, "use_sliding_window": True, **values}
    (folder / "config.json").write_text(json.dumps(given_sizes))
    try:
        found = read_architecture(folder)
        tables = RotaryTables(replace(found, max_positions=2), 2)
        angles = tables.cosines, tables.sines
    except ModelError:
        return
    assert found.heads % found.kv_heads == 0
    assert min(found.heads, found.kv_heads, found.layers, found.head_dim // 2, found.hidden_size) > 0
    assert found.intermediate_size > 0
    assert all(window >= 1 for window in map(found.window_of, range(min(found.layers, 100))))
    scales = (found.attention_scale, found.embedding_scale, found.residual_scale, found.logits_scale)
    factors = (found.norm_epsilon, *scales)
    assert {type(each) for each in factors} == {float}  # kernels are compiled for floats
    assert np.isfinite(factors).all()
    assert np.isfinite(angles).all()


@pytest.mark.parametrize("model_type", ["gemma3_text", "qwen2", "mistral"])
@pytest.mark.parametrize("values", [{"num_hidden_layers": 1 << 40}, {"max_window_layers": -(1 << 40)}])
def test_layers_are_counted_before_they_are_listed(model_type, values):
    config = {"model_type": model_type, **SIZES, "use_sliding_window": True, "sliding_window": 512, **values}
    if "num_hidden_layers" in values:
        with pytest.raises(ValueError, match="num_hidden_layers"):
            architecture_of(config)
    else:
        assert len(architecture_of(config).windowed_layers) <= config["num_hidden_layers"]


@pytest.mark.parametrize("depth", [1000, 100_000])
def test_a_config_of_nested_arrays_is_damaged(tmp_path, depth):
    (tmp_path / "config.json").write_text('{"model_type": ' + "[" * depth + "]" * depth + "}")
    with pytest.raises(ModelError, match=r"config\.json|family"):
        read_architecture(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelDamagedError):
        CodeTokenizer.from_folder(tmp_path)
