"""Tiny random models of each supported family and rotary scaling, with transformers' own module of each."""

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GemmaConfig,
    GemmaForCausalLM,
    GraniteConfig,
    GraniteForCausalLM,
    GraniteMoeHybridConfig,
    GraniteMoeHybridForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Starcoder2Config,
    Starcoder2ForCausalLM,
)

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
    "qwen2-window": (
        Qwen2ForCausalLM,
        Qwen2Config(**SIZES, use_sliding_window=True, sliding_window=9, max_window_layers=1),
    ),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config(**SIZES, head_dim=64)),
    "granite": (
        GraniteForCausalLM,
        GraniteConfig(
            **SIZES,
            attention_multiplier=0.1,
            embedding_multiplier=3.0,
            residual_multiplier=0.22,
            logits_scaling=4.0,
            attention_bias=True,
            mlp_bias=True,
            tie_word_embeddings=True,
        ),
    ),
    "granite4": (
        GraniteMoeHybridForCausalLM,
        GraniteMoeHybridConfig(
            **SIZES,
            shared_intermediate_size=192,
            num_local_experts=0,
            position_embedding_type="rope",
            layer_types=["full_attention"] * 3,
            mamba_n_heads=8,
            attention_multiplier=0.2,
            embedding_multiplier=2.0,
            residual_multiplier=0.5,
            logits_scaling=3.0,
        ),
    ),
    "mistral": (MistralForCausalLM, MistralConfig(**SIZES, sliding_window=None)),
    "mistral-window": (MistralForCausalLM, MistralConfig(**SIZES, sliding_window=20)),
    "starcoder2": (Starcoder2ForCausalLM, Starcoder2Config(**SIZES)),
    "starcoder2-window": (Starcoder2ForCausalLM, Starcoder2Config(**SIZES, sliding_window=5)),
    "gemma": (GemmaForCausalLM, GemmaConfig(**SIZES, head_dim=64)),
    "gemma3": (
        Gemma3ForCausalLM,
        Gemma3TextConfig(**SIZES, head_dim=64, sliding_window=12, sliding_window_pattern=2, query_pre_attn_scalar=48),
    ),
}


@pytest.fixture(scope="session", params=VARIANTS)
def tiny(request, tmp_path_factory):
    """A tiny random model: its folder, and transformers' own float32 module."""
    return save_variant(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="session")
def tiny_qwen(tmp_path_factory):
    return save_variant("qwen2", tmp_path_factory.mktemp("qwen2"))


def save_variant(name, folder):
    """Write a model of `VARIANTS`; return its folder and module."""
    torch.manual_seed(sum(name.encode()))
    kind, config = VARIANTS[name]
    module = kind(config).float().eval()
    for parameter_name, parameter in module.named_parameters():
        if parameter_name.endswith(("bias", "norm.weight", "layernorm.weight")):
            torch.nn.init.normal_(parameter, mean=float(parameter.mean().round()), std=0.3)
    module.save_pretrained(folder)
    return folder, module


def with_tokenizer(folder):
    """Write a tokenizer whose tokens are bytes into a model's folder; return the folder."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({byte: index for index, byte in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder
