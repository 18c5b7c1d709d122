"""Tensors in a model folder's safetensors files, mapped into memory, for numpy and for torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from completion.errors import ModelDamagedError, ModelError, ModelNotFoundError, UnsupportedModelError
from drafting.arrays import FloatArray

Bits = npt.NDArray[np.uint16]
_INDEX = "model.safetensors.index.json"
"""Name of the file that says in which of a divided model's files each tensor is."""
_MOST_TABLE_BYTES = 100_000_000
"""Maximum size of a file's table of tensors, as in the library safetensors: a damaged length may cover all of it."""
_KINDS: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor as it is in the file.

    Attributes:
        kind: "F32", "F16" or "BF16".
        values: Its numbers; of BF16 their bits.
    """

    kind: str
    values: npt.NDArray[Any]

    def floats(self) -> FloatArray:
        """Return the numbers as float32."""
        if self.kind == "BF16":
            return bfloat16_floats(self.values)
        return self.values.astype(np.float32)

    def bfloats(self) -> Bits:
        """Return the bits of the nearest bfloat16."""
        return self.values if self.kind == "BF16" else bfloat16_bits(self.floats())


class Tensors(Protocol):
    """All tensors of a model by name."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Shape of every tensor, by its name."""

    def get(self, name: str) -> StoredTensor | None:
        """Return a tensor, None if there is none of this name."""

    def __getitem__(self, name: str) -> StoredTensor:
        """Return a tensor that must exist.

        Raises:
            ModelDamagedError: It is missing.
        """
        if (found := self.get(name)) is None:
            raise ModelDamagedError(f"The model's files lack the tensor {name}. Convert or download the model again.")
        return found


class StoredTensors(Tensors):
    """Those of a folder's safetensors files.

    Raises:
        ModelNotFoundError: The folder has no safetensors file.
        ModelDamagedError: A file is truncated or no safetensors file, or their index is damaged.
        ModelError: A file cannot be read.
        UnsupportedModelError: A tensor has another format than float32, float16 and bfloat16.
    """

    def __init__(self, folder: Path) -> None:
        files = sorted(folder.glob("*.safetensors"))
        if not files:
            raise ModelNotFoundError(
                f"The folder {folder} holds no .safetensors file. Name a converted model's folder."
            )
        index = folder / _INDEX
        if index.is_file():
            named = _named_in(index)
            files = [file for file in files if file.name in named]
        self._tensors = {name: tensor for file in files for name, tensor in _read(file).items()}

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """See `Tensors`."""
        return {name: tensor.values.shape for name, tensor in self._tensors.items()}

    def get(self, name: str) -> StoredTensor | None:
        """See `Tensors`."""
        return self._tensors.get(name)


def missing_files(folder: Path) -> list[str]:
    """Return the names of the files that a folder lacks to be a model; the index of a divided model names its parts.

    Raises:
        ModelDamagedError: The index is damaged.
    """
    index = folder / _INDEX
    parts = sorted(_named_in(index)) if index.is_file() else []
    missing = [name for name in ("config.json", "tokenizer.json", *parts) if not (folder / name).is_file()]
    return missing if parts or any(folder.glob("*.safetensors")) else [*missing, "*.safetensors"]


def head_name(tensors: Tensors, *, tied: bool) -> str:
    """Return the name of the matrix from hidden states to logits."""
    return "model.embed_tokens.weight" if tied or "lm_head.weight" not in tensors.shapes else "lm_head.weight"


def bfloat16_bits(values: FloatArray) -> Bits:
    """Return the bits of the nearest bfloat16, ties to even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


def bfloat16_floats(bits: npt.NDArray[Any]) -> FloatArray:
    """Return the numbers that bits of bfloat16 stand for."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _named_in(index: Path) -> set[str]:
    """Return the names of the files that the index of a divided model names."""
    try:
        return set(map(str, json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = f"{type(error).__name__}: {error}"  # the representation of an error of decoding has the whole file
        raise ModelDamagedError(f"{index} is truncated or damaged ({why}). Download it again.") from error


def _read(file: Path) -> dict[str, StoredTensor]:
    """Map a safetensors file: the length of a JSON table, the table, the tensors at its offsets."""
    try:
        data = np.memmap(file, np.uint8, "c")  # pages are private, since torch wants writable memory
        start = 8 + min(int(data[:8].view("<u8")[0]), _MOST_TABLE_BYTES)
        table: Mapping[str, Any] = json.loads(data[8:start].tobytes())
        entries = {name: entry for name, entry in table.items() if name != "__metadata__"}
        return {name: _tensor(file, name, data[start:], entry) for name, entry in entries.items()}
    except OSError as error:
        raise ModelError(f"{file} cannot be read ({error.strerror}). Make it readable.") from error
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        why = f"{type(error).__name__}: {error}"
        raise ModelDamagedError(f"{file} is truncated or damaged ({why}). Convert or download it again.") from error


def _tensor(file: Path, name: str, data: npt.NDArray[np.uint8], entry: Mapping[str, Any]) -> StoredTensor:
    if entry["dtype"] not in _KINDS:
        raise UnsupportedModelError(f"{file} has the tensor {name} as {entry['dtype']}; {', '.join(_KINDS)} are read.")
    first, end = entry["data_offsets"]
    return StoredTensor(entry["dtype"], data[first:end].view(_KINDS[entry["dtype"]]).reshape(entry["shape"]))
