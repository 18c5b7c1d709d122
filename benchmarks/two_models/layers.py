"""Drafters that are a part of the model: some of its layers, with its norm and head, on its own cache.

Sources: "SWIFT: On-the-Fly Self-Speculative Decoding for LLM Inference Acceleration" (skips the layers without which
the draft still agrees); "Kangaroo: Lossless Self-Speculative Decoding via Double Early Exiting" and "DEL:
Context-Aware Dynamic Exit Layer for Efficient Self-Speculative Decoding" (first layers). Kangaroo trains a layer of its
own after the exit, which is not done here: `if_all_accepted_speed` says what a perfect one would reach.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from completion.model.int8.cache import Int8Cache
from completion.model.int8.packed_weights import PackedWeights
from completion.model.int8.quantized import QuantizedTransformer

Layers = tuple[int, ...]
"""Indices of the layers that are kept, ascending."""


def with_layers(weights: PackedWeights, kept: Layers) -> PackedWeights:
    """Return a model of some layers, in their order. Nothing is copied."""
    new_index = {str(layer): str(index) for index, layer in enumerate(kept)}
    sections = {}
    for name, section in weights.sections.items():
        owner, _, part = name.partition(".")
        if owner in new_index or not owner.isdigit():
            sections[f"{new_index.get(owner, owner)}.{part}"] = section
    windowed = tuple(index for index, layer in enumerate(kept) if layer in weights.architecture.windowed_layers)
    architecture = replace(weights.architecture, layers=len(kept), windowed_layers=windowed)
    return replace(weights, architecture=architecture, sections=sections)


def cache_of(drafter: QuantizedTransformer, full: Int8Cache, kept: Layers) -> Int8Cache:
    """Return a cache of a part of the model with what the whole model has computed.

    The copy is this benchmark's only: kernels that know which layers they skip would read the same cache.
    """
    cache, layers = drafter.new_cache(full.capacity), list(kept)
    keys, plain_keys, values = (array[layers] for array in full.view[:3])
    cache.view = cache.view._replace(keys=keys, plain_keys=plain_keys, values=values)
    cache.slots = full.slots
    cache.settle(full.length)
    return cache


def first_layers(layers: int, share: float) -> Layers:
    """Return the layers before an early exit."""
    return tuple(range(max(1, round(share * layers))))


def without_every_other(layers: int) -> Layers:
    """Return the layers without every other one of the middle two thirds."""
    first, last = layers // 6, layers - layers // 6
    return tuple(layer for layer in range(layers) if not (first <= layer < last and (layer - first) % 2))


def skipped_greedily(layers: int, agreement: Callable[[Layers], float], most: int) -> list[int]:
    """Return layers in the order in which they are skipped: each time the one without which the draft agrees most.

    Args:
        layers: Number of the model's layers.
        agreement: Returns how often a draft of some layers agrees with the model.
        most: Maximum number of skipped layers.
    """
    skipped: list[int] = []
    while len(skipped) < most:
        rest = [layer for layer in range(layers) if layer not in skipped]
        skipped.append(max(rest, key=lambda layer: agreement(all_but(layers, [*skipped, layer]))))
    return skipped


def all_but(layers: int, skipped: Sequence[int]) -> Layers:
    """Return the layers that are not skipped."""
    return tuple(layer for layer in range(layers) if layer not in skipped)
