"""Reads a GGUF file: its fields by name, and its weights by their names in transformers."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt

from completion.errors import ModelDamagedError, ModelError, UnsupportedModelError
from completion.model.families import layer_names
from completion.model.int8.kernels.block_kinds import KIND_NUMBERS
from completion.model.store.gguf_header import JoinedFiles, OtherByteOrderError, StoredBlocks, read_header
from completion.model.weights import bfloat16_bits
from drafting.arrays import FloatArray

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
CHUNK_ELEMENTS = 1 << 20  # numbers that are dequantised at a time: 4 MB of float32, which stay in caches


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of a GGUF file.

    Attributes:
        name: Name in transformers' model.
        blocks: The tensor as it is in the file.
        row_order: Index of the stored row that becomes row i, None if the order stays.  # [rows]
    """

    name: str
    blocks: StoredBlocks
    row_order: npt.NDArray[np.intp] | None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape in transformers' model."""
        return self.blocks.shape

    @property
    def size_bytes(self) -> int:
        """Size in bfloat16."""
        return 2 * int(np.prod(self.shape))

    @property
    def has_kernel(self) -> bool:
        """Whether it is a vector, or has blocks that kernels multiply as they are."""
        return len(self.shape) == 1 or self.blocks.kind.name in KIND_NUMBERS

    def rows(self) -> npt.NDArray[np.uint8]:
        """Return the blocks of a matrix's rows, in transformers' order.  # [rows, bytes of a row]."""
        stored = self.blocks.rows()
        return stored if self.row_order is None else stored[self.row_order]

    def bfloat16_chunks(self) -> Iterator[npt.NDArray[np.uint16]]:
        """Yield the bits of the nearest bfloat16 numbers, some rows at a time.

        Raises:
            UnsupportedModelError: Blocks of this kind are not read.
        """
        if len(self.shape) == 1:
            yield bfloat16_bits(self.vector())
            return
        rows, step = self.rows(), max(1, CHUNK_ELEMENTS // self.shape[-1])
        for start in range(0, len(rows), step):
            yield bfloat16_bits(self.floats(rows[start : start + step]))

    def vector(self) -> FloatArray:
        """Return the numbers of a vector, in transformers' order.

        Raises:
            UnsupportedModelError: Blocks of this kind are not read.
        """
        values = self.floats(self.blocks.rows())
        return values if self.row_order is None else values[self.row_order]

    def floats(self, rows: npt.NDArray[np.uint8]) -> FloatArray:
        """Return the numbers in some of the rows.

        Raises:
            UnsupportedModelError: Blocks of this kind are not read.
        """
        try:
            values: FloatArray = gguf.dequantize(rows, self.blocks.kind)
        except NotImplementedError as error:
            raise UnsupportedModelError(
                f"The GGUF file has the tensor {self.blocks.name!r} as {self.blocks.kind.name}, which is not read. "
                "Give a file with another quantisation, or a folder of safetensors."
            ) from error
        return values


class GgufFile:
    """Read access to a GGUF file: fields by name, weights by their name in transformers.

    Args:
        paths: The file, or its parts in their order.

    Raises:
        ModelError: The file cannot be read.
        ModelDamagedError: The file is truncated or not GGUF.
        UnsupportedModelError: Its architecture is unknown, it is one of several parts, or has the other byte order.
    """

    def __init__(self, *paths: Path) -> None:
        self.path = paths[0]
        try:
            self._fields, self._tensors = read_header(JoinedFiles(paths))
        except OSError as error:
            raise ModelError(
                f"{error.filename or self.path} cannot be read ({error.strerror}). Make it readable."
            ) from error
        except OtherByteOrderError as error:
            raise UnsupportedModelError(
                f"{self.path} is for computers with the other byte order. Download the file for this one, or convert "
                "it: gguf-convert-endian of the package gguf."
            ) from error
        except (ValueError, IndexError, KeyError, TypeError, ArithmeticError, RecursionError, struct.error) as error:
            raise ModelDamagedError(
                f"{self.path} is truncated, no GGUF file, or of a format that is not read ({error}). Download it "
                "again, or give a folder of safetensors instead."
            ) from error
        if (parts := self.field("split.count", 1)) > 1:
            raise UnsupportedModelError(
                f"{self.path} is one of {parts} parts of a model. Join them into one file with llama.cpp: "
                "llama-gguf-split --merge FIRST_PART NEW_FILE.gguf"
            )
        self.architecture = str(self.field("general.architecture"))
        if self.architecture not in ARCHITECTURES:
            known = ", ".join(sorted(ARCHITECTURES))
            raise UnsupportedModelError(
                f"{self.path} holds a model of architecture {self.architecture!r}; GGUF files are read for {known}. "
                "Give a folder of safetensors instead."
            )

    def field(self, name: str, default: object = _REQUIRED) -> Any:  # noqa: ANN401 -- GGUF holds values of many types
        """Return the value of a metadata field.

        Raises:
            ModelDamagedError: The field is missing and no default is given.
        """
        if name in self._fields:
            try:
                return _decoded(self._fields[name])
            except UnicodeDecodeError as error:
                raise ModelDamagedError(
                    f"The field {name} of {self.path} is damaged. Download the file again."
                ) from error
        if default is _REQUIRED:
            raise ModelDamagedError(f"{self.path} lacks the field {name}. Download the file again.")
        return default

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
        return [self._tensor(blocks) for blocks in self._tensors]

    def _tensor(self, blocks: StoredBlocks) -> Tensor:
        heads, rows = self._permuted_heads(blocks.name), blocks.shape[0]
        if heads and rows % (2 * heads):
            raise ModelDamagedError(
                f"The tensor {blocks.name} of {self.path} has {rows} rows, which are no pairs of rows for each of "
                f"{heads} heads. Download the file again."
            )
        return Tensor(self._transformers_name(blocks.name), blocks, _row_order(rows, heads) if heads else None)

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


def _decoded(value: Any) -> Any:  # noqa: ANN401 -- see `GgufFile.field`
    """Return a field's value with texts in the place of their bytes."""
    if isinstance(value, list):
        return [_decoded(each) for each in value] if value and isinstance(value[0], (bytes, list)) else value
    return value.decode() if isinstance(value, bytes) else value
