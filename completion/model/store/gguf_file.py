"""Reads a GGUF file: its fields by name, and its weights by their names in transformers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt

from completion.errors import ModelDamagedError, ModelError, UnsupportedModelError
from completion.model.families import layer_names
from completion.model.int8.kernels.block_kinds import KIND_NUMBERS

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
        ModelError: The file cannot be read.
        ModelDamagedError: The file is truncated or not GGUF.
        UnsupportedModelError: Its architecture is unknown, it is one of several parts, or has the other byte order.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._reader = gguf.GGUFReader(path)
        except OSError as error:
            raise ModelError(f"{path} cannot be read ({error.strerror}). Make it readable.") from error
        except (ValueError, IndexError, KeyError, TypeError, ArithmeticError, RecursionError) as error:
            raise ModelDamagedError(
                f"{path} is truncated, no GGUF file, or of a format that is not read ({error}). Download it again, or "
                "give a folder of safetensors instead."
            ) from error
        self._refuse_other_files()
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
            return self._contents(name, found)
        if default is _REQUIRED:
            raise ModelDamagedError(f"{self.path} lacks the field {name}. Download the file again.")
        return default

    def _contents(self, name: str, field: gguf.ReaderField) -> Any:  # noqa: ANN401
        try:
            return field.contents()
        except (ValueError, IndexError, TypeError, RecursionError) as error:  # no UTF-8; arrays within arrays
            raise ModelDamagedError(f"The field {name} of {self.path} is damaged. Download the file again.") from error

    def _refuse_other_files(self) -> None:
        """Refuse a file that holds a part of a model, or numbers that would be read wrongly."""
        if self._reader.byte_order != "I":
            raise UnsupportedModelError(
                f"{self.path} is for computers with the other byte order. Download the file for this one, or convert "
                "it: gguf-convert-endian of the package gguf."
            )
        if (parts := self.field("split.count", 1)) > 1:
            raise UnsupportedModelError(
                f"{self.path} is one of {parts} parts of a model. Join them into one file with llama.cpp: "
                "llama-gguf-split --merge FIRST_PART NEW_FILE.gguf"
            )

    def parameter(self, name: str, default: object = _REQUIRED) -> Any:  # noqa: ANN401 -- GGUF holds values of many types
        """Return a field of the architecture: `parameter("block_count")` is `qwen2.block_count`.

        Raises:
            ModelDamagedError: It is missing, neither text nor a finite number, or a size or count below 1.
        """
        found = self.field(f"{self.architecture}.{name}", default)
        is_number = isinstance(found, int | float) and math.isfinite(found)
        is_size = name.endswith(("count", "count_kv", "length"))
        fits = is_number and found >= 1 if is_size else is_number or isinstance(found, str)
        if found is not default and not fits:
            raise ModelDamagedError(
                f"The field {name} of {self.path} is {str(found)[:40]!r}, which no model has. Download the file again."
            )
        return found

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
        if heads and shape[0] % (2 * heads):
            raise ModelDamagedError(
                f"The tensor {tensor.name} of {self.path} has {shape[0]} rows, which are no pairs of rows for each of "
                f"{heads} heads. Download the file again."
            )
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


def _row_order(rows: int, heads: int) -> npt.NDArray[np.intp]:
    """Return stored rows in transformers' order, for interleaved RoPE pairs.  # [rows]."""
    return np.arange(rows).reshape(heads, rows // heads // 2, 2).swapaxes(1, 2).reshape(rows)
