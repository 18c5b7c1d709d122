"""Small GGUF files, written as llama.cpp's converter writes them."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
import torch
from safetensors.torch import load_file

from completion.model.store import converted_models, gguf_source
from tests.tiny_models import HEAD_DIM, HEADS, KV_HEADS, VOCABULARY_SIZE, tiny_tokenizer, write_tiny_model

_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
}
_INTERLEAVED = {"llama", "granite"}
CHAT_TEMPLATE = "{{ messages[0].content }}"
_WORDS = ("▁def", "▁return", "▁the", "▁self", "self", "return", "▁▁", "▁▁▁▁", "in", "er", "re", "th", "nt", "se", "lf")


def write_tiny_gguf(
    path: Path,
    family: str = "qwen2",
    *,
    quantisation: str = "F32",
    tokenizer: str = "qwen2",
    head_dim: int = HEAD_DIM,
) -> Path:
    """Write the tiny model of a family as GGUF, and the same model as safetensors in the folder `<path>.folder`.

    Args:
        path: The GGUF file.
        family: "qwen2" or "llama"; llama's query and key rows are interleaved, as in llama.cpp.
        quantisation: Type of the matrices.
        tokenizer: "llama" (sentencepiece with scores), or how a byte-level one splits text: "qwen2", "smollm", ...
        head_dim: Channels of a head.
    """
    folder = write_tiny_model(path.with_name(f"{path.name}.folder"), family, head_dim=head_dim)
    return write_gguf(path, folder, family, quantisation=quantisation, tokenizer=tokenizer)


def write_gguf(
    path: Path,
    folder: Path,
    family: str,
    *,
    quantisation: str = "F32",
    tokenizer: str = "qwen2",
    kv_heads: int = KV_HEADS,
) -> Path:
    """Write a model folder as GGUF with the tiny tokenizer; arguments as in `write_tiny_gguf`."""
    writer = gguf.GGUFWriter(path, family)
    _add_sizes(writer, json.loads((folder / "config.json").read_text()))
    tensors = load_file(folder / "model.safetensors")
    if tokenizer == "llama":
        _add_sentencepiece(writer)
    else:
        _add_byte_level(writer, tokenizer, len(tensors["model.embed_tokens.weight"]))
    for name, tensor in tensors.items():
        values, kind = tensor.to(torch.float32).numpy(), gguf.GGMLQuantizationType[quantisation]
        add_tensor(writer, name, values, family, kind, kv_heads)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_sizes(writer: gguf.GGUFWriter, config: dict) -> None:
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    if "norm_epsilon" in config:
        writer.add_layer_norm_eps(config["norm_epsilon"])
    else:
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    if "head_dim" in config:
        writer.add_key_length(config["head_dim"])
    if "attention_multiplier" in config:
        writer.add_attention_scale(config["attention_multiplier"])
        writer.add_embedding_scale(config["embedding_multiplier"])
        writer.add_residual_scale(config["residual_multiplier"])
        writer.add_logit_scale(config["logits_scaling"])
    if config.get("sliding_window"):
        writer.add_sliding_window(config["sliding_window"])
    writer.add_rope_freq_base(
        config["rope_theta"] if "rope_theta" in config else config["rope_parameters"]["rope_theta"]
    )
    _add_rope_scaling(writer, config.get("rope_parameters") or {})
    writer.add_bos_token_id(config.get("bos_token_id") or 0)
    writer.add_eos_token_id(config.get("eos_token_id") or 2)
    writer.add_chat_template(CHAT_TEMPLATE)


def _add_rope_scaling(writer: gguf.GGUFWriter, parameters: dict) -> None:
    if (kind := parameters.get("rope_type", "default")) == "default":
        return
    writer.add_rope_scaling_type(gguf.RopeScalingType(kind))
    for name, add in {
        "factor": writer.add_rope_scaling_factor,
        "original_max_position_embeddings": writer.add_rope_scaling_orig_ctx_len,
        "beta_fast": writer.add_rope_scaling_yarn_beta_fast,
        "beta_slow": writer.add_rope_scaling_yarn_beta_slow,
        "attention_factor": writer.add_rope_scaling_yarn_attn_factor,
    }.items():
        if name in parameters:
            add(parameters[name])


def _add_byte_level(writer: gguf.GGUFWriter, splitting: str, size: int) -> None:
    model = json.loads(tiny_tokenizer().to_str())
    added = {token["id"]: token["content"] for token in model["added_tokens"]}
    ids = {index: token for token, index in model["model"]["vocab"].items()} | added
    tokens = [ids.get(index, f"[PAD{index}]") for index in range(size)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(splitting)
    writer.add_token_list(tokens)
    writer.add_token_types([3 if i in added else 1 if i in ids else 5 for i in range(size)])
    merges = [merge for merge in model["model"]["merges"] if "".join(merge) in tokens]
    writer.add_token_merges([" ".join(merge) for merge in merges])


def _add_sentencepiece(writer: gguf.GGUFWriter) -> None:
    control = ["<unk>", "<s>", "</s>", "▁<PRE>", "▁<MID>", "▁<SUF>"]
    fallback = [f"<0x{byte:02X}>" for byte in range(256)]
    letters = [*"abcdefghijklmnopqrstuvwxyz", "▁", "(", ")", ":"]
    pairs = ["▁d", "▁de", "▁r", "▁re", "▁ret", "▁retu", "▁retur", "▁t", "▁th", "▁s", "▁se", "▁sel", "ret", "sel"]
    pieces = [*_WORDS, *pairs, *letters]
    unused = [f"<unused{n}>" for n in range(VOCABULARY_SIZE - len(control) - len(fallback) - len(pieces))]
    writer.add_tokenizer_model("llama")
    writer.add_add_space_prefix(value=False)
    writer.add_token_list([*control, *fallback, *pieces, *unused])
    types = [2, *[3] * (len(control) - 1), *[6] * 256, *[1] * len(pieces), *[5] * len(unused)]
    writer.add_token_types(types)
    writer.add_token_scores([-float(n) for n in range(VOCABULARY_SIZE)])


def write_record(folder: Path, digest: str = "0" * 12) -> Path:
    """Make a folder one that a conversion of ours made, for what is kept in it, with its GGUF file as the source."""
    gguf_source.note_source(folder, [folder / converted_models.GGUF_NAME], has_kernels=True)
    converted_models._write_record(converted_models.Source(folder.name, digest), "", folder)
    return folder


def add_tensor(
    writer: gguf.GGUFWriter,
    name: str,
    values: np.ndarray,
    family: str,
    kind: gguf.GGMLQuantizationType,
    kv_heads: int = KV_HEADS,
) -> None:
    """Add a tensor by its name in transformers, as llama.cpp's converter does; vectors are not quantised."""
    if family in _INTERLEAVED and ".q_proj." in name:
        values = _interleaved(values, HEADS)
    if family in _INTERLEAVED and ".k_proj." in name:
        values = _interleaved(values, kv_heads)
    if values.ndim == 1 or kind is gguf.GGMLQuantizationType.F32:
        writer.add_tensor(_gguf_name(name), values)
    else:
        writer.add_tensor(_gguf_name(name), gguf.quantize(values, kind), raw_dtype=kind)


def _interleaved(values: np.ndarray, heads: int) -> np.ndarray:
    """Return rows as llama.cpp's converter stores them, with the two rows of a RoPE pair adjacent."""
    return values.reshape(heads, 2, values.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(values.shape)


def _gguf_name(name: str) -> str:
    stem, _, kind = name.rpartition(".")
    if stem in _NAMES:
        return f"{_NAMES[stem]}.{kind}"
    _, _, layer, part = stem.split(".", 3)
    return f"blk.{layer}.{_NAMES[part]}.{kind}"
