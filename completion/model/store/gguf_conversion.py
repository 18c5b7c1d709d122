"""Converts a GGUF file to safetensors, config.json and tokenizer.json in little memory.

transformers reads GGUF too, but makes float32 copies of the whole model: 25 s and 3 GB for half a billion weights.
Here a few thousand rows at a time are dequantised and appended to the result.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt

from completion.errors import ModelDamagedError, UnsupportedModelError
from completion.model.architecture import architecture_default
from completion.model.families import family_of, layer_names
from completion.model.int8.kernels.block_kinds import KIND_NUMBERS
from completion.model.store.converted_models import CHAT_TEMPLATE_NAME, GGUF_NAME
from completion.model.store.disk import require_free
from completion.model.store.gguf_tokenizer import tokenizer_json
from completion.model.weights import bfloat16_bits
from completion.progress import Progress

CHUNK_ELEMENTS = 1 << 22  # numbers that are dequantised at a time: 16 MB of float32

_TOP_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_PARTS = {
    "attn_norm": "attention_norm",
    "attn_q": "query",
    "attn_k": "key",
    "attn_v": "value",
    "attn_q_norm": "query_norm",
    "attn_k_norm": "key_norm",
    "attn_output": "attention_out",
    "ffn_norm": "mlp_norm",
    "ffn_gate": "gate",
    "ffn_up": "up",
    "ffn_down": "down",
}
"""Parts of a layer (`families`) by GGUF's name."""
ARCHITECTURES = {
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "llama": "LlamaForCausalLM",
    "granite": "GraniteForCausalLM",
    "starcoder2": "Starcoder2ForCausalLM",
}
"""Architectures that are read, with transformers' names of their classes."""
_INTERLEAVED = frozenset({"llama", "granite"})
"""Architectures in which llama.cpp pairs neighbouring channels for RoPE, where transformers pairs halves of a head."""
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
_REQUIRED = object()


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor to convert from GGUF to safetensors.

    Attributes:
        name: Name in transformers' model.
        shape: Shape in transformers' model.
        source: The tensor in the GGUF file.
        row_order: Index of the stored row that becomes row i, None if the order stays.  # [rows]
    """

    name: str
    shape: tuple[int, ...]
    source: gguf.ReaderTensor
    row_order: npt.NDArray[np.intp] | None

    @property
    def size_bytes(self) -> int:
        """Size in bfloat16."""
        return 2 * int(np.prod(self.shape))

    @property
    def has_kernel(self) -> bool:
        """Whether it is a vector, or has blocks that kernels multiply as they are."""
        return len(self.shape) == 1 or self.source.tensor_type.name in KIND_NUMBERS


class GgufFile:
    """Read access to a GGUF file: fields by name, weights by their name in transformers.

    Raises:
        ModelDamagedError: The file is truncated or not GGUF.
        UnsupportedModelError: Its architecture is unknown.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._reader = gguf.GGUFReader(path)
        except (ValueError, IndexError, KeyError) as error:
            raise ModelDamagedError(f"{path} is truncated or not a GGUF file ({error}). Download it again.") from error
        self.architecture = str(self.field("general.architecture"))
        if self.architecture not in ARCHITECTURES:
            known = ", ".join(sorted(ARCHITECTURES))
            raise UnsupportedModelError(
                f"{path} holds a model of architecture {self.architecture!r}; GGUF files are read for {known}. "
                "Give a folder of safetensors instead."
            )

    def field(self, name: str, default: object = _REQUIRED) -> Any:  # noqa: ANN401 -- GGUF holds values of many types
        """Return the value of a metadata field.

        Raises:
            ModelDamagedError: The field is missing and no default is given.
        """
        found = self._reader.get_field(name)
        if found is not None:
            return found.contents()
        if default is _REQUIRED:
            raise ModelDamagedError(f"{self.path} lacks the field {name}. Download the file again.")
        return default

    def parameter(self, name: str, default: object = _REQUIRED) -> Any:  # noqa: ANN401 -- GGUF holds values of many types
        """Return a field of the architecture: `parameter("block_count")` is `qwen2.block_count`."""
        return self.field(f"{self.architecture}.{name}", default)

    def tensors(self) -> list[Tensor]:
        """Return every weight, in the file's order.

        Raises:
            UnsupportedModelError: A tensor has no counterpart in transformers' model.
        """
        return [self._tensor(tensor) for tensor in self._reader.tensors]

    def _tensor(self, tensor: gguf.ReaderTensor) -> Tensor:
        name = self._transformers_name(tensor.name)
        shape = tuple(int(size) for size in reversed(tensor.shape))
        heads = self._permuted_heads(tensor.name)
        return Tensor(name, shape, tensor, _row_order(shape[0], heads) if heads else None)

    def _transformers_name(self, name: str) -> str:
        stem, _, kind = name.rpartition(".")
        if stem in _TOP_NAMES:
            return f"{_TOP_NAMES[stem]}.{kind}"
        prefix, layer, part = (*stem.split(".", 2), "", "")[:3]
        names = layer_names(self.architecture, layer)
        if prefix == "blk" and _PARTS.get(part) in names:
            return f"{names[_PARTS[part]]}.{kind}"
        raise UnsupportedModelError(
            f"{self.path} has a tensor {name!r}, which is unknown in {self.architecture} models. "
            "Give a folder of safetensors instead."
        )

    def _permuted_heads(self, name: str) -> int:
        """Return the heads of a matrix whose rows llama.cpp stores in another order (query, key); 0 for other tensors.

        See `_INTERLEAVED`; other architectures have transformers' order.
        """
        if self.architecture not in _INTERLEAVED:
            return 0
        if ".attn_q." in name:
            return int(self.parameter("attention.head_count"))
        if ".attn_k." in name:
            return int(self.parameter("attention.head_count_kv", self.parameter("attention.head_count")))
        return 0


def convert_gguf(path: Path, folder: Path, progress: Progress) -> None:
    """Write `model.safetensors` (bfloat16), `config.json` and `tokenizer.json` into an existing folder.

    If kernels multiply the blocks of all matrices, the file itself is there afterwards as well, as `model.gguf`. The
    model has tied embeddings if the file has no output head.

    Raises:
        ModelDamagedError: The file is truncated.
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
    if (scaling := source.parameter("rope.scaling.type", "none")) != "none":
        config["rope_scaling"] = {"rope_type": scaling, **_rope_scaling(source, scaling)}
    return config


def _rope_scaling(source: GgufFile, kind: str) -> dict[str, float]:
    """Return the parameters of a rotary scaling; llama.cpp's converter copies YaRN's from transformers' config."""
    found = {"factor": source.parameter("rope.scaling.factor")}
    if kind == "yarn":
        found |= {name: source.parameter(f"rope.scaling.{field}", None) for field, name in _YARN.items()}
    return {name: _decimal(value) for name, value in found.items() if value is not None}


def _norm_epsilon(source: GgufFile) -> dict[str, object]:
    centred = family_of(source.architecture).centred_norms
    field = "attention.layer_norm_epsilon" if centred else "attention.layer_norm_rms_epsilon"
    return {"norm_epsilon" if centred else "rms_norm_eps": _decimal(source.parameter(field))}


def _decimal(value: float) -> float:
    """Return the short decimal number that a float32 field stands for: 9.99999997e-07 is 1e-06."""
    return float(f"{float(value):.6g}")


def _row_order(rows: int, heads: int) -> npt.NDArray[np.intp]:
    """Return stored rows in transformers' order, for interleaved RoPE pairs.  # [rows]."""
    return np.arange(rows).reshape(heads, rows // heads // 2, 2).swapaxes(1, 2).reshape(rows)


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
        yield bfloat16_bits(gguf.dequantize(data[start : start + rows], tensor.source.tensor_type)).tobytes()
