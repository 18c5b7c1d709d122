"""Sections of packed weights in int8, with one scale for each output channel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from completion.model.architecture import Architecture
from completion.model.int8.kernels.int8_product import CHANNELS
from completion.model.weights import Linear, open_tensors, read_head, read_layer, required
from drafting.arrays import FloatArray, IntArray

_HALF_PANEL = CHANNELS // 2
Section = npt.NDArray[Any]


def int8_sections(folder: Path, architecture: Architecture) -> Iterator[tuple[str, Section]]:
    """Yield every section, with one layer in memory at a time."""

    def floats(tensor: torch.Tensor) -> FloatArray:
        return tensor.float().numpy()

    def matrix(name: str, linear: Linear, order: IntArray | None = None) -> Iterator[tuple[str, Section]]:
        weight = floats(linear.weight)
        bias = np.zeros(len(weight), np.float32) if linear.bias is None else floats(linear.bias)
        weight, bias = (weight, bias) if order is None else (weight[order], bias[order])
        packed, scales = pack_matrix(weight)
        yield f"{name}.weights", packed
        yield f"{name}.scales", scales
        yield f"{name}.bias", _padded(bias)

    read = open_tensors(folder, torch.bfloat16)
    order = gate_up_order(architecture.intermediate_size)
    for index in range(architecture.layers):
        layer = read_layer(read, index)
        yield f"{index}.norm_1", floats(layer.attention_norm)
        yield from matrix(f"{index}.qkv", layer.qkv)
        yield from matrix(f"{index}.attention_out", layer.attention_out)
        yield f"{index}.norm_2", floats(layer.mlp_norm)
        yield from matrix(f"{index}.gate_up", layer.gate_up, order)
        yield from matrix(f"{index}.down", layer.down)
    yield "final.norm_1", floats(required(read, "model.norm.weight"))
    yield from matrix("final.qkv", Linear(read_head(read, architecture), None))
    yield "embeddings", required(read, "model.embed_tokens.weight").view(torch.uint16).numpy()


def gate_up_order(intermediate: int) -> IntArray:
    """Return the order of gate and up channels: panels of 32 gates, then their 32 ups.  # [2 · intermediate]."""
    gates = np.arange(intermediate).reshape(-1, _HALF_PANEL)
    return np.concatenate([gates, gates + intermediate], axis=1).ravel()


def pack_matrix(weight: FloatArray) -> tuple[Section, FloatArray]:
    """Quantise a matrix by output channel and lay it out in panels; see `kernels.int8_product`.

    Args:
        weight: The matrix.  # [out, in]

    Returns:
        weights + 128 as uint8 [panels, in / 4, 64, 4], and scales [panels · 64].
    """
    largest = np.abs(weight).max(axis=1)
    scales = (np.where(largest > 0, largest, 1.0) / 127.0).astype(np.float32)
    quantised = _padded(np.rint(weight / scales[:, None]).astype(np.int16) + 128).astype(np.uint8)
    panels = quantised.reshape(-1, CHANNELS, weight.shape[1] // 4, 4).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(panels), _padded(scales)


def _padded(array: Section) -> Section:
    """Return an array with zeros up to a whole number of panels."""
    missing = -len(array) % CHANNELS
    return np.concatenate([array, np.zeros((missing, *array.shape[1:]), array.dtype)]) if missing else array
