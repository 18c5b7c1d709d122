"""Sections of packed weights with the blocks of a model's GGUF file as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt

from completion.errors import UnsupportedModelError
from completion.model.architecture import Architecture
from completion.model.families import layer_names
from completion.model.int8.gguf_blocks import repack
from completion.model.int8.int8_sections import gate_up_order
from completion.model.int8.kernels.block_kinds import KIND_NUMBERS, KINDS, STRIP
from completion.model.int8.kernels.sizes import CHANNELS
from completion.model.store.converted_models import kept_gguf
from completion.model.store.gguf_conversion import GgufFile, Tensor
from completion.model.store.tensor_shapes import check_shapes, checked_tensors

_CHUNK_ROWS = 256 * STRIP  # rows that are repacked at a time
_PANEL_STRIPS = CHANNELS // STRIP
Section = npt.NDArray[Any]
Strips = list[tuple[int, Section]]
"""Kind and bytes of each strip of a matrix."""


def block_sections(folder: Path, architecture: Architecture) -> Iterator[tuple[str, Section]]:
    """Yield every section; a matrix has "NAME.blocks", the strips "NAME.strips" [strips, 2] (offset, kind), a bias.

    It has "NAME.scales" as well where the family scales its results.

    Raises:
        UnsupportedModelError: The model does not come from a GGUF file whose blocks all have a kernel.
        ModelDamagedError: The folder's files are damaged, or of another model than the config.
    """
    if (source := kept_gguf(folder)) is None:
        kinds = ", ".join(KIND_NUMBERS)
        raise UnsupportedModelError(f"{folder.name} is not from a GGUF file with {kinds} only. Use the backend int8.")
    embeddings, file = checked_tensors(folder, architecture), _Blocks(source)
    check_shapes(file.shapes, architecture, source)
    residual = architecture.residual_scale
    for index in range(architecture.layers):
        names = layer_names(architecture.family, index)
        qkv = [names["query"], names["key"], names["value"]]
        yield from _matrix(f"{index}.qkv", [strip for name in qkv for strip in file.strips(name)], file.biases(qkv))
        for part in ("attention_out", "down"):
            strips, biases = file.strips(names[part]), file.biases([names[part]])
            yield from _matrix(f"{index}.{part}", strips, biases, residual)
        gate_up = [names[part] for part in ("gate", "up") if part in names]
        ups, biases = [strip for name in gate_up for strip in file.strips(name)], file.biases(gate_up)
        if architecture.gated:
            gates, ups = ups[: len(ups) // 2], ups[len(ups) // 2 :]
            ups = [strip for n in range(0, len(ups), 2) for strip in gates[n : n + 2] + ups[n : n + 2]]
            biases = biases[gate_up_order(architecture.intermediate_size)]
        yield from _matrix(f"{index}.up", ups, biases)
        for part, name in names.items():
            if part.endswith("norm"):
                yield from file.norm(f"{index}.{part}", name)
    yield from file.norm("final.attention_norm", "model.norm", architecture.logits_scale)
    yield from _matrix("final.qkv", file.strips("model.embed_tokens" if architecture.tied_head else "lm_head"))
    yield "embeddings", embeddings["model.embed_tokens.weight"].bfloats()


class _Blocks:
    """Tensors of a GGUF file."""

    def __init__(self, path: Path) -> None:
        self._path, self._tensors = path, {tensor.name: tensor for tensor in GgufFile(path).tensors()}

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of every tensor, by its name."""
        return {name: tensor.shape for name, tensor in self._tensors.items()}

    def strips(self, name: str) -> Strips:
        """Return the strips of a matrix.

        Raises:
            UnsupportedModelError: Its blocks have no kernel.
        """
        tensor = self._tensors[f"{name}.weight"]
        if not tensor.has_kernel:
            kind, kinds = tensor.source.tensor_type.name, ", ".join(KIND_NUMBERS)
            raise UnsupportedModelError(
                f"{self._path} has the tensor {tensor.name} as {kind}; {kinds} are multiplied. Use the backend int8."
            )
        return list(_strips(tensor))

    def biases(self, names: Sequence[str]) -> Section:
        """Return the biases of some matrices, joined; a missing one is zero."""
        found = [self._vector(f"{name}.bias") for name in names]
        sizes = [self._tensors[f"{name}.weight"].shape[0] for name in names]
        return np.concatenate([np.zeros(n, np.float32) if b is None else b for b, n in zip(found, sizes, strict=True)])

    def norm(self, name: str, stored: str, scale: float = 1.0) -> Iterator[tuple[str, Section]]:
        """Yield the sections of a norm."""
        for ending, part in (("", "weight"), (".bias", "bias")):
            if (values := self._vector(f"{stored}.{part}")) is not None:
                yield f"{name}{ending}", values * np.float32(scale)

    def _vector(self, name: str) -> Section | None:
        tensor = self._tensors.get(name)
        if tensor is None:
            return None
        values = gguf.dequantize(tensor.source.data, tensor.source.tensor_type)
        return values if tensor.row_order is None else values[tensor.row_order]


def _matrix(
    name: str, strips: Strips, bias: Section | None = None, scale: float = 1.0
) -> Iterator[tuple[str, Section]]:
    """Yield the sections of a matrix, padded to whole panels."""
    strips = strips + [(kind, 0 * strip) for kind, strip in strips[: -len(strips) % _PANEL_STRIPS]]
    sizes, channels = [len(strip) for _, strip in strips], STRIP * len(strips)
    starts = np.cumsum([0, *sizes[:-1]])
    yield f"{name}.blocks", np.concatenate([strip for _, strip in strips])
    yield f"{name}.strips", np.stack([starts, [kind for kind, _ in strips]], axis=1).astype(np.int64)
    filled = np.zeros(channels, np.float32)
    if bias is not None:
        filled[: len(bias)] = bias * np.float32(scale)
    yield f"{name}.bias", filled
    if scale != 1.0:
        yield f"{name}.scales", np.full(channels, scale, np.float32)


def _strips(tensor: Tensor) -> Iterator[tuple[int, Section]]:
    """Yield a matrix's strips; rows are padded with zeros to a whole number of strips."""
    number = KIND_NUMBERS[tensor.source.tensor_type.name]
    rows = tensor.source.data if tensor.row_order is None else tensor.source.data[tensor.row_order]
    for start in range(0, len(rows), _CHUNK_ROWS):
        chunk = np.array(rows[start : start + _CHUNK_ROWS])
        whole = np.pad(chunk, ((0, -len(chunk) % STRIP), (0, 0)))
        for strip in repack(whole, KINDS[number]):
            yield number, strip.ravel()
