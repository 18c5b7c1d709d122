"""Matrices in int8, with a scale for each group of an output channel's columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from completion.model.architecture import Architecture
from completion.model.families import family_of
from completion.model.int8.kernels.processor import weight_layout
from completion.model.int8.kernels.sizes import CHANNELS, group_width
from completion.model.int8.sections import Section, Sections, gate_up_order, padded
from completion.model.weights import Bits, StoredTensor, Tensors, head_name
from drafting.arrays import FloatArray


class FloatMatrices:
    """The tensors of a model whose matrices are rounded."""

    def __init__(self, tensors: Tensors, architecture: Architecture) -> None:
        self._tensors, self._tied_head = tensors, architecture.tied_head
        self._norm_offset = np.float32(family_of(architecture.family).norm_offset)

    def vector(self, name: str) -> FloatArray | None:
        """See `MatrixSource`."""
        if (stored := self._tensors.get(name)) is None:
            return None
        is_norm = name.endswith("norm.weight")
        return stored.floats() + self._norm_offset if is_norm else stored.floats()

    def embeddings(self) -> Iterator[Bits]:
        """See `MatrixSource`."""
        yield self._tensors["model.embed_tokens.weight"].bfloats()

    def stored(self, name: str) -> StoredTensor:
        """Return a matrix, which may be the embeddings in the place of a head."""
        return self._tensors[head_name(self._tensors, tied=self._tied_head) if name == "lm_head" else f"{name}.weight"]


class Int8Panels(FloatMatrices):
    """Matrices in int8. One of them is in memory at a time as floats."""

    layers_at_once = 1

    def matrix(self, name: str, stored: Sequence[str], scale: float, *, paired: bool) -> Sections:
        """See `MatrixSource`. A matrix has the section "NAME.weights"."""
        weights = [self.stored(each).floats() for each in stored]
        weight = weights[0] if len(weights) == 1 else np.concatenate(weights)
        weight = weight[gate_up_order(len(weight) // 2)] if paired else weight
        yield f"{name}.weights", pack_matrix(weight if scale == 1.0 else weight * np.float32(scale))


def pack_matrix(weight: FloatArray) -> Section:
    """Quantise a matrix by groups of each channel's columns, and lay it out in panels; see `kernels.int8_product`.

    # float32 [out, in] → bytes [panels, any]
    """
    group, (offset, run) = group_width(weight.shape[1]), weight_layout()
    groups = padded(weight).reshape(-1, CHANNELS, weight.shape[1] // group, group)
    largest = np.abs(groups).max(axis=3, keepdims=True)
    largest[largest == 0] = 1
    scales = _rounded_up(largest / np.float32(127))  # [panels, 64, groups, 1]
    values = np.rint(groups / scales).astype(np.int16) + np.int16(offset)
    runs = values.astype(np.uint8).reshape(*values.shape[:3], group // run, run).transpose(0, 2, 3, 1, 4)
    bits = (scales.view(np.uint32) >> np.uint32(16)).astype(np.uint16).transpose(0, 2, 1, 3)
    parts = [np.ascontiguousarray(part).view(np.uint8).reshape(*runs.shape[:2], -1) for part in (runs, bits)]
    return np.concatenate(parts, axis=2).reshape(len(runs), -1)


def _rounded_up(scales: FloatArray) -> FloatArray:
    """Return the next larger numbers that bfloat16 holds, so that no value exceeds 127."""
    bits = np.ascontiguousarray(scales, np.float32).view(np.uint32)
    return ((bits + np.uint32(0xFFFF)) & np.uint32(0xFFFF0000)).view(np.float32)
