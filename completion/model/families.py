"""What each family of models does otherwise than Llama: one row a family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from completion.errors import UnsupportedModelError

_LLAMA_NAMES = {
    "attention_norm": "input_layernorm",
    "query": "self_attn.q_proj",
    "key": "self_attn.k_proj",
    "value": "self_attn.v_proj",
    "attention_out": "self_attn.o_proj",
    "mlp_norm": "post_attention_layernorm",
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "down": "mlp.down_proj",
}
_HEAD_NORMS = {"query_norm": "self_attn.q_norm", "key_norm": "self_attn.k_norm"}
_POST_NORMS = {
    "attention_post_norm": "post_attention_layernorm",
    "mlp_norm": "pre_feedforward_layernorm",
    "mlp_post_norm": "post_feedforward_layernorm",
}
_ATTENTION_ONLY = {part: name for part, name in _LLAMA_NAMES.items() if not name.startswith("mlp.")}


@dataclass(frozen=True, slots=True)
class Family:
    """Differences of a family from Llama that a model's config does not tell.

    Attributes:
        names: Names of a layer's tensors by part. "gate" is missing where "up" has gate and up, or `gated` is false;
            "query_norm", "key_norm", "attention_post_norm" and "mlp_post_norm" where the family has no such norm.
        gated: Whether the MLP has a gate.
        centred_norms: Whether norms remove the mean and add a bias (LayerNorm), instead of RMSNorm.
        norm_offset: Number that is added to stored norm weights.
        scales_embeddings: Whether embeddings are multiplied by √hidden_size.
        defaults: Values that transformers takes if a config lacks them, besides those of Llama. Only layers of families
            with a `sliding_window` here may have windows.
        required: Values that a config must have.
    """

    names: Mapping[str, str] = field(default_factory=lambda: _LLAMA_NAMES)
    gated: bool = True
    centred_norms: bool = False
    norm_offset: float = 0.0
    scales_embeddings: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict)
    required: Mapping[str, Any] = field(default_factory=dict)


_NO_WINDOW = {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28}
_STARCODER2: dict[str, Any] = {"tie_word_embeddings": True, "hidden_act": "gelu_pytorch_tanh", "norm_epsilon": 1e-5}
_STARCODER2 |= {"sliding_window": None}
_GEMMA = {"tie_word_embeddings": True, "hidden_act": "gelu_pytorch_tanh", "head_dim": 256}
_GEMMA3: dict[str, Any] = {"sliding_window": 4096, "sliding_window_pattern": 6, "query_pre_attn_scalar": 256}
_GEMMA3 |= {"rope_theta": 1_000_000.0, "rope_local_base_freq": 10_000.0}

FAMILIES: Mapping[str, Family] = {
    "llama": Family(),  # also DeepSeek-Coder V1, CodeLlama, Seed-Coder, Mellum, Granite Code, SmolLM2
    "mistral": Family(defaults={"sliding_window": 4096}),  # also Codestral
    "qwen2": Family(defaults=_NO_WINDOW),
    "qwen3": Family(_LLAMA_NAMES | _HEAD_NORMS, defaults=_NO_WINDOW | {"head_dim": 128}),
    "granite": Family(defaults={"attention_multiplier": 1.0}),
    "granitemoehybrid": Family(  # Granite 4; only its dense models
        _ATTENTION_ONLY | {"up": "shared_mlp.input_linear", "down": "shared_mlp.output_linear"},
        defaults={"attention_multiplier": 1.0, "layer_types": ("linear_attention",)},
        required={"num_local_experts": 0, "position_embedding_type": "rope"},
    ),
    "starcoder2": Family(
        _ATTENTION_ONLY | {"up": "mlp.c_fc", "down": "mlp.c_proj"},
        gated=False,
        centred_norms=True,
        defaults=_STARCODER2,
    ),
    "gemma": Family(norm_offset=1.0, scales_embeddings=True, defaults=_GEMMA),
    "gemma3_text": Family(
        _LLAMA_NAMES | _HEAD_NORMS | _POST_NORMS, norm_offset=1.0, scales_embeddings=True, defaults=_GEMMA | _GEMMA3
    ),
}
"""Families that our own forward pass runs, by transformers' `model_type`."""


def family_of(model_type: str) -> Family:
    """Return a family's row.

    Raises:
        UnsupportedModelError: There is none.
    """
    if model_type not in FAMILIES:
        raise UnsupportedModelError(
            f"The model family {model_type!r} has no built-in forward pass (built in: {', '.join(FAMILIES)})."
            " Use --backend transformers for it."
        )
    return FAMILIES[model_type]


def layer_names(model_type: str, layer: int | str) -> dict[str, str]:
    """Return the names of a layer's tensors by part, without the endings ".weight" and ".bias"."""
    return {part: f"model.layers.{layer}.{name}" for part, name in family_of(model_type).names.items()}
