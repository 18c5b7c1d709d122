"""A config is read as transformers reads it, in old and new spellings; what the forward pass cannot do is refused."""

import json

import pytest
from transformers import AutoConfig

from completion.errors import ModelDamagedError, UnsupportedModelError
from completion.model.architecture import MAX_POSITIONS, architecture_of, read_architecture

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


@pytest.mark.parametrize("text", ["{", "[]", '{"model_type": "llama"}', HEADLESS])
def test_a_damaged_config_is_named(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ModelDamagedError, match=r"config\.json"):
        read_architecture(tmp_path)
