"""Sections of packed weights whose matrices are in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from completion.model.architecture import Architecture
from completion.model.families import layer_names
from completion.model.int8.gguf_blocks import Strips
from completion.model.int8.int8_sections import gate_up_order
from completion.model.int8.kernels.block_kinds import STRIP
from completion.model.int8.kernels.sizes import CHANNELS
from completion.model.worker_threads import usable_threads

_PANEL_STRIPS = CHANNELS // STRIP
Section = npt.NDArray[Any]


class BlockSource(Protocol):
    """A model's matrices in blocks, and its vectors, by the names that its tensors have in transformers."""

    def strips(self, name: str) -> Strips:
        """Return the strips of a matrix; rows are padded with zeros to a whole number of strips.

        Raises:
            UnsupportedModelError: Its blocks have no kernel.
        """

    def vector(self, name: str) -> Section | None:
        """Return a bias, or what a norm multiplies or adds; None if the model has none of this name.  # [width]."""

    def embeddings(self) -> Iterator[Section]:
        """Yield the embeddings as bfloat16 bits, some rows at a time.  # [rows, hidden] each."""


def block_sections(architecture: Architecture, source: BlockSource) -> Iterator[tuple[str, Section]]:
    """Yield every section, the last one in parts.

    A matrix has "NAME.blocks", the strips "NAME.strips" [strips, 2] (offset, kind), a bias,
    and "NAME.scales" where the family scales its results.

    Raises:
        UnsupportedModelError: A matrix has blocks without a kernel.
    """
    threads = usable_threads()

    def layer(index: int) -> list[tuple[str, Section]]:
        return list(_layer(index, architecture, source))

    with ThreadPoolExecutor(threads) as pool:
        for first in range(0, architecture.layers, threads):  # so that no more of them are in memory
            for sections in pool.map(layer, range(first, architecture.layers)[:threads]):
                yield from sections
    yield from _norm("final.attention_norm", source, "model.norm", architecture.logits_scale)
    yield from _matrix("final.qkv", source.strips("model.embed_tokens" if architecture.tied_head else "lm_head"))
    for rows in source.embeddings():
        yield "embeddings", rows


def _layer(index: int, architecture: Architecture, source: BlockSource) -> Iterator[tuple[str, Section]]:
    names, residual = layer_names(architecture.family, index), architecture.residual_scale
    hidden, intermediate = architecture.hidden_size, architecture.intermediate_size
    queries, keys = architecture.heads * architecture.head_dim, architecture.kv_heads * architecture.head_dim
    qkv = {names["query"]: queries, names["key"]: keys, names["value"]: keys}
    yield from _matrix(f"{index}.qkv", [strip for name in qkv for strip in source.strips(name)], _biases(source, qkv))
    for part in ("attention_out", "down"):
        bias = _biases(source, {names[part]: hidden})
        yield from _matrix(f"{index}.{part}", source.strips(names[part]), bias, residual)
    ups_width = intermediate if "gate" in names or not architecture.gated else 2 * intermediate
    gate_up = {names[part]: ups_width for part in ("gate", "up") if part in names}
    ups, bias = [strip for name in gate_up for strip in source.strips(name)], _biases(source, gate_up)
    if architecture.gated:
        gates, ups = ups[: len(ups) // 2], ups[len(ups) // 2 :]
        ups = [strip for n in range(0, len(ups), 2) for strip in gates[n : n + 2] + ups[n : n + 2]]
        bias = bias[gate_up_order(intermediate)]
    yield from _matrix(f"{index}.up", ups, bias)
    for part, name in names.items():
        if part.endswith("norm"):
            yield from _norm(f"{index}.{part}", source, name)


def _biases(source: BlockSource, stored: Mapping[str, int]) -> Section:
    """Return the biases of matrices, by name with their number of channels, one after the other; a missing one is 0."""
    found = {name: source.vector(f"{name}.bias") for name in stored}
    return np.concatenate([np.zeros(stored[name], np.float32) if b is None else b for name, b in found.items()])


def _norm(name: str, source: BlockSource, stored: str, scale: float = 1.0) -> Iterator[tuple[str, Section]]:
    for ending, part in (("", "weight"), (".bias", "bias")):
        if (values := source.vector(f"{stored}.{part}")) is not None:
            yield f"{name}{ending}", values * np.float32(scale)


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
