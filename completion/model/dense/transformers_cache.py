"""The cache of transformers' models: keys and values of one sequence in slots that may be moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from completion.memory import Held
from completion.model.dense.held_tensors import held_by
from completion.model.dense.kv_cache import lengthened
from completion.model.draft_rows import TreeCache
from drafting.arrays import IntArray

if TYPE_CHECKING:
    from completion.model.dense.transformers_model import TransformersModel


class TransformersCache(TreeCache):
    """Keys and values in tensors that transformers' attention layers write to through `update`.

    A moved key is rotated from the key as it was computed rather than from an earlier rotation, so no error adds up.
    """

    def __init__(self, model: TransformersModel, capacity: int) -> None:
        shape = (model.shape.layers, model.shape.kv_heads, 0, model.shape.head_dim)
        self._keys, self._computed_keys, self._values = (torch.zeros(shape, dtype=model.dtype) for _ in range(3))
        self._computed_at = torch.zeros(0, dtype=torch.int64)  # position that a slot's key was computed for
        self._model = model
        self._slots = torch.empty(0, dtype=torch.int64)
        self._span = 0
        super().__init__(min(capacity, model.shape.max_positions))

    @property
    def size_bytes(self) -> int:
        """Allocated memory."""
        return 3 * self._keys.nbytes

    def held(self) -> Held:
        """Return where its memory is."""
        return held_by((self._keys, self._computed_keys, self._values))

    def resize(self, slots: int) -> None:
        """Allocate slots, and copy the content of the old ones."""
        stores = (self._keys, self._computed_keys, self._values)
        self._keys, self._computed_keys, self._values = (lengthened(store, 2, slots) for store in stores)
        self._computed_at = lengthened(self._computed_at, 0, slots)

    def begin(self, slots: torch.Tensor, positions: torch.Tensor, span: int) -> None:
        """Set where the next forward pass writes, and how many slots it reads.  slots, positions: # [rows]."""
        self._slots, self._span = slots, span
        self._computed_at[slots] = positions

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: object, **__: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store rows of one layer; return all keys and values that they may see.  # [1, kv_heads, rows, head_dim]."""
        self._keys[layer].index_copy_(1, self._slots, keys[0])
        self._computed_keys[layer].index_copy_(1, self._slots, keys[0])
        self._values[layer].index_copy_(1, self._slots, values[0])
        return self._keys[layer, None, :, : self._span], self._values[layer, None, :, : self._span]

    def get_seq_length(self, _layer: int = 0) -> int:
        """Return the number of committed slots; transformers calls this method."""
        return self.length

    def copy_slots(self, sources: IntArray, targets: IntArray) -> None:
        """Copy slots as if all at once.  # [slots] twice."""
        self._copy(torch.from_numpy(sources.astype(np.int64)), torch.from_numpy(targets.astype(np.int64)))

    def rearrange(self, sources: IntArray) -> None:
        """Fill slots 0 .. len(sources)-1 from old slots; see `KVCache.rearrange`.

        Raises:
            UnsupportedModelError: The family has no plain rotary positions.
        """
        self.reserve(len(sources))
        moved = np.flatnonzero((sources >= 0) & (sources != np.arange(len(sources))))
        if len(moved):
            frequencies = self._model.rotary_frequencies()
            to = torch.from_numpy(moved)
            self._copy(torch.from_numpy(sources[moved].astype(np.int64)), to)
            self._keys[:, :, to] = rotated(self._computed_keys[:, :, to], to - self._computed_at[to], frequencies)
        self.settle(len(sources))

    def key(self, layer: int, slot: int) -> torch.Tensor:
        """Return the rotated key in a slot.  # [kv_heads, 1, head_dim]."""
        return self._keys[layer, :, slot : slot + 1].clone()

    def _copy(self, source: torch.Tensor, to: torch.Tensor) -> None:
        for store in (self._keys, self._computed_keys, self._values):
            store[:, :, to] = store[:, :, source]
        self._computed_at[to] = self._computed_at[source]


def rotated(keys: torch.Tensor, by: torch.Tensor, frequencies: torch.Tensor) -> torch.Tensor:
    """Turn channel pairs (i, i + rotary_dim/2) of keys by a number of positions ("RoFormer", equation 34).

    Args:
        keys: Rotated keys; channels after the rotary ones stay unchanged.  # [..., rows, head_dim]
        by: Numbers of positions, which may be negative.  # [rows]
        frequencies: Frequencies of the pairs, in float64.  # [rotary_dim / 2]
    """
    angles = by.double()[:, None] * frequencies
    cosines, sines = angles.cos().float(), angles.sin().float()
    left, right, unrotated = keys.float().tensor_split([len(frequencies), 2 * len(frequencies)], dim=-1)
    turned = torch.cat((left * cosines - right * sines, right * cosines + left * sines, unrotated), dim=-1)
    return turned.to(keys.dtype)
