"""Sections of packed weights in int8, with a scale for each group of an output channel's columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from completion.model.architecture import Architecture
from completion.model.families import family_of, layer_names
from completion.model.int8.kernels.processor import weight_layout
from completion.model.int8.kernels.sizes import CHANNELS, group_width
from completion.model.store.tensor_shapes import checked_tensors
from completion.model.weights import head_name
from drafting.arrays import FloatArray, IntArray

_HALF_PANEL = CHANNELS // 2
Section = npt.NDArray[Any]


def int8_sections(folder: Path, architecture: Architecture) -> Iterator[tuple[str, Section]]:
    """Yield every section, with one matrix in memory at a time.

    Raises:
        ModelError: Files are missing or damaged, or of another model than the config.
    """
    tensors, offset = checked_tensors(folder, architecture), np.float32(family_of(architecture.family).norm_offset)

    def norm(name: str, stored: str, scale: float = 1.0) -> Iterator[tuple[str, Section]]:
        yield name, (tensors[f"{stored}.weight"].floats() + offset) * np.float32(scale)
        if (bias := tensors.get(f"{stored}.bias")) is not None:
            yield f"{name}.bias", bias.floats() * np.float32(scale)

    def matrix(
        name: str, stored: Sequence[str], order: IntArray | None = None, scale: float = 1.0
    ) -> Iterator[tuple[str, Section]]:
        weight, bias = tensors.joined(stored)
        weight, bias = (weight, bias) if order is None else (weight[order], bias[order])
        yield f"{name}.weights", pack_matrix(weight if scale == 1.0 else weight * np.float32(scale))
        yield f"{name}.bias", _padded(bias) * np.float32(scale)

    order, residual = gate_up_order(architecture.intermediate_size), architecture.residual_scale
    for index in range(architecture.layers):
        names = layer_names(architecture.family, index)
        yield from matrix(f"{index}.qkv", [names["query"], names["key"], names["value"]])
        yield from matrix(f"{index}.attention_out", [names["attention_out"]], scale=residual)
        gate_up = [names[part] for part in ("gate", "up") if part in names]
        yield from matrix(f"{index}.up", gate_up, order if architecture.gated else None)
        yield from matrix(f"{index}.down", [names["down"]], scale=residual)
        for part, stored in names.items():
            if part.endswith("norm"):
                yield from norm(f"{index}.{part}", stored)
    yield from norm("final.attention_norm", "model.norm", architecture.logits_scale)
    yield from matrix("final.qkv", [head_name(tensors, tied=architecture.tied_head).removesuffix(".weight")])
    yield "embeddings", tensors["model.embed_tokens.weight"].bfloats()


def gate_up_order(intermediate: int) -> IntArray:
    """Return the order of gate and up channels: panels of 32 gates, then their 32 ups.  # [2 · intermediate]."""
    gates = np.arange(intermediate).reshape(-1, _HALF_PANEL)
    return np.concatenate([gates, gates + intermediate], axis=1).ravel()


def pack_matrix(weight: FloatArray) -> Section:
    """Quantise a matrix by groups of each channel's columns, and lay it out in panels; see `kernels.int8_product`.

    Args:
        weight: The matrix.  # [out, in]

    Returns:
        Its panels as bytes.  # [panels, any]
    """
    group, (offset, run) = group_width(weight.shape[1]), weight_layout()
    groups = _padded(weight).reshape(-1, CHANNELS, weight.shape[1] // group, group)
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


def _padded(array: Section) -> Section:
    """Return an array with zeros up to a whole number of panels."""
    missing = -len(array) % CHANNELS
    return np.concatenate([array, np.zeros((missing, *array.shape[1:]), array.dtype)]) if missing else array
