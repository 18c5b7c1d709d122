"""Tiny random models of each supported family and rotary scaling, with transformers' own module of each."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

SIZES = {
    "vocab_size": 384,
    "hidden_size": 128,
    "intermediate_size": 320,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.3,
}
VARIANTS = {
    "qwen2": (Qwen2ForCausalLM, Qwen2Config(**SIZES, tie_word_embeddings=False)),
    "qwen2-tied": (Qwen2ForCausalLM, Qwen2Config(**SIZES, tie_word_embeddings=True)),
    "llama": (LlamaForCausalLM, LlamaConfig(**SIZES, tie_word_embeddings=False)),
    "llama-one-kv-head": (LlamaForCausalLM, LlamaConfig(**{**SIZES, "num_key_value_heads": 1})),
    "llama-linear": (
        LlamaForCausalLM,
        LlamaConfig(**SIZES, rope_parameters={"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}),
    ),
    "llama-llama3": (
        LlamaForCausalLM,
        LlamaConfig(
            **SIZES,
            rope_parameters={
                "rope_type": "llama3",
                "rope_theta": 500000.0,
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 64,
            },
        ),
    ),
    "qwen2-yarn": (
        Qwen2ForCausalLM,
        Qwen2Config(
            **SIZES,
            rope_parameters={
                "rope_type": "yarn",
                "rope_theta": 10000.0,
                "factor": 4.0,
                "original_max_position_embeddings": 128,
            },
        ),
    ),
}


@pytest.fixture(scope="session", params=VARIANTS)
def tiny(request, tmp_path_factory):
    """A tiny random model: its folder, and transformers' own float32 module."""
    return _save(request.param, tmp_path_factory)


@pytest.fixture(scope="session")
def tiny_qwen(tmp_path_factory):
    return _save("qwen2", tmp_path_factory)


def _save(name, tmp_path_factory):
    torch.manual_seed(sum(name.encode()))
    kind, config = VARIANTS[name]
    module = kind(config).float().eval()
    for parameter_name, parameter in module.named_parameters():
        if parameter_name.endswith(("bias", "norm.weight", "layernorm.weight")):
            torch.nn.init.normal_(parameter, mean=1.0 if "norm" in parameter_name else 0.0, std=0.3)
    folder = tmp_path_factory.mktemp(name)
    module.save_pretrained(folder)
    return folder, module
