"""Attention of the torch decoder: where rows are written, which slots they see, and the sum of the values there."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from completion.model.architecture import Architecture
from completion.model.dense.kv_cache import ExactStore, Store, rotate
from completion.model.draft_rows import tree_distances
from drafting.arrays import IntArray


@dataclass(frozen=True, slots=True)
class Sight:
    """Where rows are, and which slots each sees: the first ones up to its limit, and some rows of a tree.

    Nothing has rows × span.

    Attributes:
        slots: Slots that receive the rows' keys and values.  # int64 [rows]
        positions: Rotary positions of the rows.  # int64 [rows]
        limits: Number of first slots that each row sees. Slot s of them is at position s.  # int64 [rows]
        start: First slot of the tree.  # int64 [1]
        end: Number of slots that any row sees at most.  # int64 [1]
        distances: Number of positions from each row of the tree up to the row, itself included; 0 for a row that is
            not seen.  # int16 [rows, rows of the tree], no columns without a tree
        span: At least `end`, the same in all steps of one graph.
    """

    slots: Tensor
    positions: Tensor
    limits: Tensor
    start: Tensor
    end: Tensor
    distances: Tensor
    span: int

    @classmethod
    def of_slots(cls, slots: Tensor, span: int) -> Sight:
        """Return the sight of rows that see every slot up to their own, the last of which ends the span.  # [rows]."""
        no_tree = torch.zeros((len(slots), 0), dtype=torch.int16, device=slots.device)
        return cls(slots, slots, slots + 1, slots[-1:] + 1, slots[-1:] + 1, no_tree, span)

    @classmethod
    def of_tree(cls, parents: IntArray, kept: int, length: int, device: str) -> Sight:
        """Return the sight of the rows of a tree after its kept ones, on top of a past of `length` slots."""
        depths, distances = tree_distances(parents, kept)
        span = length + len(parents)
        start, end = torch.tensor([[length], [span]], device=device)
        slots = torch.arange(length + kept, span, device=device)
        positions = torch.from_numpy(depths.astype(np.int64)).to(device) + start
        in_tree = torch.from_numpy(distances).to(device)
        return cls(slots, positions, start.expand(len(depths)), start, end, in_tree, span)

    def mask(self, window: int) -> Tensor:
        """Return what is added to attention scores: 0 for a slot that the row sees, −∞ for others.  # [rows, span].

        `window` is the number of last positions that a row sees, 0 for all.
        """
        slots, columns = torch.arange(self.span, device=self.limits.device), self.distances.shape[1]
        distances = self.positions[:, None] - slots + 1
        seen = slots < self.limits[:, None]
        if columns:
            offsets = slots - self.start
            in_tree = (offsets >= 0) & (offsets < columns)
            in_lineage = self.distances[:, offsets.clamp(0, columns - 1)]
            seen |= in_tree & (in_lineage > 0)
            distances = torch.where(in_tree, in_lineage, distances)
        if window:
            seen &= distances <= window
        return torch.zeros(seen.shape, device=seen.device).masked_fill(~seen, -math.inf)


class Attention(Protocol):
    """Attention of one forward pass."""

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, layer: int, store: Store) -> Tensor:
        """Write the rows' keys and values. Return softmax(scale · q kᵀ) v over the slots that each row sees.

        Args:
            q: Queries before rotation. Those that share a KV head follow each other.  # [heads, rows, head_dim]
            k: Keys before rotation.  # [kv_heads, rows, head_dim]
            v: Values.  # [kv_heads, rows, head_dim]
            layer: Number of the layer.
            store: All keys and values.

        Returns:
            # [heads, rows, head_dim]
        """


class PlainAttention:
    """Attention by two products, whose scores have rows × span."""

    def __init__(self, sight: Sight, architecture: Architecture) -> None:
        self._scale, self._windowed = architecture.attention_scale, frozenset(architecture.windowed_layers)
        self._sight = sight
        self._mask = self._near_mask = sight.mask(0)
        if self._windowed and architecture.window < sight.span:
            self._near_mask = sight.mask(architecture.window)

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, layer: int, store: Store) -> Tensor:
        """See `Attention`. The query heads that share a KV head are folded into its rows."""
        slots, positions = self._sight.slots, self._sight.positions
        angles = store.angles.of_layer(layer, positions)  # [rows, head_dim / 2] twice
        store.write(layer, slots, positions, k, rotate(k, *angles), v)
        mask = self._near_mask if layer in self._windowed else self._mask
        rows, span = mask.shape
        keys, values = store.read(layer, span)  # [kv_heads, span, head_dim] twice
        groups, width = keys.shape[0], keys.shape[2]
        folded = rotate(q, *angles).reshape(groups, -1, width)  # [kv_heads, heads/kv_heads · rows, head_dim]
        scores = (folded @ keys.mT).float() * self._scale
        weights = (scores.view(groups, -1, rows, span) + mask).softmax(-1).to(q.dtype).view(groups, -1, span)
        return (weights @ values).view(-1, rows, width)


@dataclass(frozen=True, slots=True)
class Kernels:
    """What differs between devices in a forward pass.

    Attributes:
        attention: Makes the attention of a pass.
        exact_store: Keys and values of 16 or 32 bits.
        prefill_rows: Maximum number of rows in one pass of a prefill.
        masks_span: Whether a pass computes its whole span, so that each length of spans has a graph of its own.
    """

    attention: Callable[[Sight, Architecture], Attention]
    exact_store: type[ExactStore]
    prefill_rows: int
    masks_span: bool


PLAIN = Kernels(PlainAttention, ExactStore, prefill_rows=256, masks_span=True)
"""torch's own operators, on every device. Masks and scores bound the rows of a pass."""
