"""Chooses formats of weights and cache in which a model fits in a share of a GPU's memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from completion.backend import Backend
from completion.model.architecture import Architecture

WORKING_BYTES = 768 << 20
"""Memory for everything but weights and cache: torch's context, captured graphs, scores and logits."""
CACHE_SLOTS = 8192
"""Slots of all caches together: a session of 4,096 while it grows, and others."""
WeightFormat = Literal["plain", "int8", "q4"]
"""Format of a torch decoder's matrices. In "q4" the embeddings and the head, which lose most, have 8 bits."""
_WEIGHT_BITS: Final[Mapping[WeightFormat, int]] = {"plain": 16, "int8": 8, "q4": 5}
"""Bits of a weight on a GPU; a group of 32 in 4 bits has a scale and a zero of 16 bits each."""


FORMATS: Final[Mapping[Backend, Sequence[tuple[WeightFormat, bool]]]] = {
    "auto": (("plain", False), ("int8", False), ("q4", False), ("q4", True)),
    "bf16": (("plain", False),),
    "int8": (("int8", False),),
    "q4": (("q4", False), ("q4", True)),
}
"""Weights, and whether the cache has 8 bits: what each backend may have on a GPU, the most exact first."""


@dataclass(frozen=True, slots=True)
class GpuPlan:
    """How a model is stored on a GPU.

    Attributes:
        weights: Format of its matrices.
        int8_cache: Whether keys and values have 8 bits instead of 16.
        memory_share: Share of the GPU's memory that it may take.
    """

    weights: WeightFormat
    int8_cache: bool
    memory_share: float


def needed_bytes(architecture: Architecture, weights: WeightFormat, *, int8_cache: bool) -> int:
    """Return the memory that a model needs on a GPU."""
    heads, groups, width = architecture.heads, architecture.kv_heads, architecture.head_dim
    attention = 2 * (heads + groups) * width * architecture.hidden_size
    mlp = (3 if architecture.gated else 2) * architecture.intermediate_size * architecture.hidden_size
    table = architecture.vocabulary_size * architecture.hidden_size * (1 if architecture.tied_head else 2)
    matrices = architecture.layers * (attention + mlp) * _WEIGHT_BITS[weights] // 8
    tables = table * (2 if weights == "plain" else 1)
    slot = 2 * (width + 4) if int8_cache else 3 * 2 * width  # the exact cache has keys before and after rotation
    return matrices + tables + CACHE_SLOTS * architecture.layers * groups * slot + WORKING_BYTES


def plan_for(architecture: Architecture, backend: Backend, memory_bytes: int, memory_share: float) -> GpuPlan | None:
    """Return the most exact plan of a backend that fits in a share of a GPU's memory, None if none does."""
    for weights, int8_cache in FORMATS[backend]:
        if needed_bytes(architecture, weights, int8_cache=int8_cache) <= memory_share * memory_bytes:
            return GpuPlan(weights, int8_cache, memory_share)
    return None
