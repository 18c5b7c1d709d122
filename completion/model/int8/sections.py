"""Sections of packed weights: what becomes of each matrix and vector of a model, whatever the form of its matrices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from completion.model.architecture import Architecture
from completion.model.families import layer_names
from completion.model.int8.kernels.sizes import CHANNELS
from completion.model.store.tensor_shapes import part_shapes
from drafting.arrays import IntArray

Section = npt.NDArray[Any]
Sections = Iterator[tuple[str, Section]]


class MatrixSource(Protocol):
    """A model's matrices in the form to pack, and its vectors, by the names that its tensors have in transformers.

    Attributes:
        layers_at_once: Number of layers that are packed at a time, and in memory.
    """

    layers_at_once: int

    def matrix(self, name: str, stored: Sequence[str], scale: float, *, paired: bool) -> Sections:
        """Yield the sections of matrices of one input, joined and filled with zeros up to whole panels.

        Args:
            name: Start of the sections' names.
            stored: Names of the matrices.
            scale: Factor on the results.
            paired: Whether the channels are gates and then ups, to be put in `gate_up_order`.

        Raises:
            UnsupportedModelError: Its blocks have no kernel.
        """

    def vector(self, name: str) -> Section | None:
        """Return a bias, or what a norm multiplies or adds; None if the model has none of this name.  # [width]."""

    def embeddings(self) -> Iterator[Section]:
        """Yield the embeddings as bfloat16 bits, some rows at a time.  # [rows, hidden] each."""


def sections(architecture: Architecture, source: MatrixSource) -> Sections:
    """Yield every section, the last one in parts.

    Raises:
        UnsupportedModelError: A matrix has blocks without a kernel.
    """
    at_once = source.layers_at_once

    def layer(index: int) -> list[tuple[str, Section]]:
        return list(_layer(index, architecture, source))

    with ThreadPoolExecutor(at_once) as pool:
        for first in range(0, architecture.layers, at_once):
            for found in pool.map(layer, range(first, architecture.layers)[:at_once]):
                yield from found
    yield from _norm("final.attention_norm", source, "model.norm", architecture.logits_scale)
    head = "model.embed_tokens" if architecture.tied_head else "lm_head"
    yield from _matrix("final.qkv", source, {head: architecture.vocabulary_size})
    for rows in source.embeddings():
        yield "embeddings", rows


def gate_up_order(intermediate: int) -> IntArray:
    """Return the order of gate and up channels: panels of 32 gates, then their 32 ups.  # [2 · intermediate]."""
    gates = np.arange(intermediate).reshape(-1, CHANNELS // 2)
    return np.concatenate([gates, gates + intermediate], axis=1).ravel()


def padded(array: Section) -> Section:
    """Return an array with zeros up to a whole number of panels."""
    missing = -len(array) % CHANNELS
    return np.concatenate([array, np.zeros((missing, *array.shape[1:]), array.dtype)]) if missing else array


def _layer(index: int, architecture: Architecture, source: MatrixSource) -> Sections:
    names, shapes = layer_names(architecture.family, index), part_shapes(architecture)
    for name, parts, scale in (
        ("qkv", ("query", "key", "value"), 1.0),
        ("attention_out", ("attention_out",), architecture.residual_scale),
        ("up", ("gate", "up"), 1.0),
        ("down", ("down",), architecture.residual_scale),
    ):
        stored = {names[part]: shapes[part][0] for part in parts if part in names}
        yield from _matrix(f"{index}.{name}", source, stored, scale, paired=name == "up" and architecture.gated)
    for part, name in names.items():
        if part.endswith("norm"):
            yield from _norm(f"{index}.{part}", source, name)


def _matrix(
    name: str, source: MatrixSource, stored: Mapping[str, int], scale: float = 1.0, *, paired: bool = False
) -> Sections:
    """Yield the sections of matrices, by name with their number of channels. A missing bias is 0."""
    yield from source.matrix(name, list(stored), scale, paired=paired)
    found = {each: source.vector(f"{each}.bias") for each in stored}
    bias = np.concatenate([np.zeros(stored[each], np.float32) if b is None else b for each, b in found.items()])
    ordered = bias[gate_up_order(len(bias) // 2)] if paired else bias
    yield f"{name}.bias", padded(ordered * np.float32(scale))


def _norm(name: str, source: MatrixSource, stored: str, scale: float = 1.0) -> Sections:
    for ending, part in (("", "weight"), (".bias", "bias")):
        if (values := source.vector(f"{stored}.{part}")) is not None:
            yield f"{name}{ending}", values * np.float32(scale)
