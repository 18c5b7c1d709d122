"""Converts a GGUF file to safetensors, config.json and tokenizer.json in little memory.

transformers reads GGUF too, but makes float32 copies of the whole model: 25 s and 3 GB for half a billion weights.
Here a few thousand rows at a time are dequantised and appended to the result.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy.typing as npt

from completion.errors import UnsupportedModelError
from completion.model.architecture import architecture_default, read_architecture
from completion.model.families import family_of
from completion.model.store.converted_models import CHAT_TEMPLATE_NAME, GGUF_NAME
from completion.model.store.disk import require_free
from completion.model.store.gguf_file import ARCHITECTURES, GgufFile, Tensor
from completion.model.store.gguf_tokenizer import tokenizer_json
from completion.model.store.tensor_shapes import check_shapes
from completion.model.weights import bfloat16_bits
from completion.progress import Progress
from drafting.arrays import FloatArray

CHUNK_ELEMENTS = 1 << 22  # numbers that are dequantised at a time: 16 MB of float32

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


def convert_gguf(path: Path, folder: Path, progress: Progress) -> None:
    """Write `model.safetensors` (bfloat16), `config.json` and `tokenizer.json` into an existing folder.

    If kernels multiply the blocks of all matrices, the file itself is there afterwards as well, as `model.gguf`. The
    model has tied embeddings if the file has no output head.

    Raises:
        ModelDamagedError: The file is truncated, or lacks a tensor.
        UnsupportedModelError: The architecture, a tensor or the tokenizer is unknown.
        StorageError: The disk has too little free space.
        OSError: A file cannot be written.
    """
    progress("Reading the GGUF file", 0.0)
    source = GgufFile(path)
    (folder / "tokenizer.json").write_text(tokenizer_json(source.field), encoding="utf-8")
    (folder / CHAT_TEMPLATE_NAME).write_text(source.field("tokenizer.chat_template", ""), encoding="utf-8")
    tensors = source.tensors()
    tied = all(tensor.name != "lm_head.weight" for tensor in tensors)
    config = _config(source, tied=tied)
    (folder / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
    check_shapes({tensor.name: tensor.shape for tensor in tensors}, read_architecture(folder), path)
    _write_safetensors(tensors, folder / "model.safetensors", progress)
    if not all(tensor.has_kernel or (tensor.name == _EMBEDDINGS and not tied) for tensor in tensors):
        (folder / GGUF_NAME).unlink(missing_ok=True)
    elif path != folder / GGUF_NAME:
        shutil.copyfile(path, folder / GGUF_NAME)


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
    config |= {name: _decimal(value) for name, value in scales.items() if value is not None}
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


def _write_safetensors(tensors: list[Tensor], path: Path, progress: Progress) -> None:
    """Stream the tensors into one file; safetensors' own writer needs them all in memory at once."""
    total = sum(tensor.size_bytes for tensor in tensors)
    require_free(path.parent, total)
    written = 0
    with path.open("wb") as file:
        file.write(_safetensors_header(tensors))
        for tensor in tensors:
            for chunk in _bfloat16_chunks(tensor):
                file.write(chunk)
                written += len(chunk)
                progress("Converting the weights", written / total)


def _safetensors_header(tensors: list[Tensor]) -> bytes:
    """Return the length and the JSON table of the safetensors format."""
    table: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for tensor in tensors:
        end = offset + tensor.size_bytes
        table[tensor.name] = {"dtype": "BF16", "shape": tensor.shape, "data_offsets": (offset, end)}
        offset = end
    header = json.dumps(table).encode()
    header += b" " * (-len(header) % 8)  # the data starts on a multiple of eight
    return len(header).to_bytes(8, "little") + header


def _bfloat16_chunks(tensor: Tensor) -> Iterator[bytes]:
    """Yield the tensor's values in runs of rows, rounded to bfloat16."""
    data = tensor.source.data
    if tensor.row_order is not None:
        data = data[tensor.row_order]
    rows = max(1, CHUNK_ELEMENTS // tensor.shape[-1]) if data.ndim > 1 else len(data)
    for start in range(0, len(data), rows):
        yield bfloat16_bits(_dequantised(tensor, data[start : start + rows])).tobytes()


def _dequantised(tensor: Tensor, rows: npt.NDArray[Any]) -> FloatArray:
    kind = tensor.source.tensor_type
    try:
        values: FloatArray = gguf.dequantize(rows, kind)
    except NotImplementedError as error:
        raise UnsupportedModelError(
            f"The GGUF file has the tensor {tensor.source.name!r} as {kind.name}, which is not read. Give a file with "
            "another quantisation, or a folder of safetensors."
        ) from error
    return values
