"""Writes the config.json, tokenizer.json and chat template of a GGUF file, whose weights stay where they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from completion.model.architecture import architecture_default, read_architecture
from completion.model.families import family_of
from completion.model.store.converted_models import CHAT_TEMPLATE_NAME
from completion.model.store.gguf_file import ARCHITECTURES, GgufFile
from completion.model.store.gguf_source import note_source
from completion.model.store.gguf_tokenizer import tokenizer_json
from completion.model.store.tensor_shapes import check_shapes
from completion.progress import Progress

_SCALES = {
    "attention.scale": "attention_multiplier",
    "embedding_scale": "embedding_multiplier",
    "residual_scale": "residual_multiplier",
    "logit_scale": "logits_scaling",
    "attention.sliding_window": "sliding_window",
}
"""Fields that only some families have, with their names in transformers' config."""
_YARN = {
    "original_context_length": "original_max_position_embeddings",
    "yarn_beta_fast": "beta_fast",
    "yarn_beta_slow": "beta_slow",
    "yarn_attn_factor": "attention_factor",
}
"""Fields of a YaRN scaling that some files have, with their names in transformers' config."""
_EMBEDDINGS = "model.embed_tokens.weight"


def convert_gguf(paths: Sequence[Path], folder: Path, progress: Progress) -> None:
    """Write `config.json`, `tokenizer.json` and the chat template into an existing folder, and where the weights are.

    The model has tied embeddings if the file has no output head. The file may be in parts, in their order.

    Raises:
        ModelDamagedError: The file is truncated, or lacks a tensor.
        UnsupportedModelError: The architecture, a tensor or the tokenizer is unknown.
        OSError: A file cannot be written.
    """
    progress("Reading the GGUF file", 0.0)
    source = GgufFile(*paths)
    tensors = source.tensors()
    tied = all(tensor.name != "lm_head.weight" for tensor in tensors)
    config = _config(source, tied=tied)
    (folder / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
    check_shapes({tensor.name: tensor.shape for tensor in tensors}, read_architecture(folder), paths[0])
    for tensor in {each.blocks.kind: each for each in tensors if not each.has_kernel}.values():
        tensor.floats(tensor.rows()[:1])  # raises if blocks of this kind are not read
    progress("Reading the vocabulary", 0.2)
    (folder / "tokenizer.json").write_text(tokenizer_json(source.field), encoding="utf-8")
    (folder / CHAT_TEMPLATE_NAME).write_text(source.field("tokenizer.chat_template", ""), encoding="utf-8")
    has_kernels = all(tensor.has_kernel or (tensor.name == _EMBEDDINGS and not tied) for tensor in tensors)
    note_source(folder, paths, has_kernels=has_kernels)
    progress("Reading the vocabulary", 1.0)


def _config(source: GgufFile, *, tied: bool) -> dict[str, object]:
    """Return the config that transformers' AutoConfig reads."""
    heads = int(source.parameter("attention.head_count"))
    hidden = int(source.parameter("embedding_length"))
    config: dict[str, object] = {
        "architectures": [ARCHITECTURES[source.architecture]],
        "model_type": source.architecture,
        "dtype": "bfloat16",
        "vocab_size": len(source.field("tokenizer.ggml.tokens")),
        "hidden_size": hidden,
        "intermediate_size": int(source.parameter("feed_forward_length")),
        "num_hidden_layers": int(source.parameter("block_count")),
        "num_attention_heads": heads,
        "num_key_value_heads": int(source.parameter("attention.head_count_kv", heads)),
        "head_dim": int(source.parameter("attention.key_length", hidden // heads)),
        "max_position_embeddings": int(source.parameter("context_length")),
        **_norm_epsilon(source),
        "rope_theta": _decimal(source.parameter("rope.freq_base", 10_000.0)),
        "hidden_act": architecture_default(source.architecture, "hidden_act"),
        "tie_word_embeddings": tied,
        "bos_token_id": source.field("tokenizer.ggml.bos_token_id", None),
        "eos_token_id": source.field("tokenizer.ggml.eos_token_id", None),
    }
    scales = {name: source.parameter(field, None) for field, name in _SCALES.items()}
    config |= {
        name: value if isinstance(value, int) else _decimal(value)
        for name, value in scales.items()
        if value is not None
    }
    return config | _rope_scaling(source)


def _rope_scaling(source: GgufFile) -> dict[str, object]:
    """Return the rotary scaling; llama.cpp's converter copies YaRN's parameters from transformers' config.

    A factor without a kind is linear, as in llama.cpp. Files from before November 2023 call it `scale_linear`.
    """
    factor = source.parameter("rope.scaling.factor", source.parameter("rope.scale_linear", 0.0))
    kind = source.parameter("rope.scaling.type", "linear")
    if kind == "none" or (kind == "linear" and not factor):
        return {}
    found = {"factor": factor or source.parameter("rope.scaling.factor")}
    if kind == "yarn":
        found |= {name: source.parameter(f"rope.scaling.{field}", None) for field, name in _YARN.items()}
    parameters = {name: _decimal(value) for name, value in found.items() if value is not None}
    return {"rope_scaling": {"rope_type": kind, **parameters}}


def _norm_epsilon(source: GgufFile) -> dict[str, object]:
    centred = family_of(source.architecture).centred_norms
    field = "attention.layer_norm_epsilon" if centred else "attention.layer_norm_rms_epsilon"
    return {"norm_epsilon" if centred else "rms_norm_eps": _decimal(source.parameter(field))}


def _decimal(value: float) -> float:
    """Return the short decimal number that a float32 field stands for: 9.99999997e-07 is 1e-06."""
    return float(f"{float(value):.6g}")
