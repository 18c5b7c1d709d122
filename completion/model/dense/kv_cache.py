"""Cache of keys and values in torch: one tensor for all layers; slots are positions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from completion.model.causal_model import ModelShape
from completion.model.draft_rows import TreeCache
from drafting.arrays import IntArray


def rotate(keys: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    """Turn channel pairs (i, i + head_dim/2) by their angle, in float32 ("RoFormer", equation 34).

    Args:
        keys: Queries or keys before rotation.  # [..., rows, head_dim]
        cosines: Cosines of the rows' angles.  # [rows, head_dim / 2]
        sines: Sines of the rows' angles.  # [rows, head_dim / 2]
    """
    left, right = keys.float().chunk(2, dim=-1)
    return torch.cat((left * cosines - right * sines, right * cosines + left * sines), dim=-1).to(keys.dtype)


@dataclass(frozen=True, slots=True)
class Angles:
    """Cosines and sines of rotary angles, and the row at which the part of each layer starts.

    Attributes:
        cosines: Cosines.  # [positions or more, head_dim / 2]
        sines: Sines.  # same shape
        first: First row of each layer.  # [layers]
    """

    cosines: torch.Tensor
    sines: torch.Tensor
    first: tuple[int, ...]

    def of_layer(self, layer: int, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return cosines and sines of one layer.  positions: # [rows] → # [rows, head_dim / 2] twice."""
        rows = positions + self.first[layer] if self.first[layer] else positions
        return self.cosines[rows], self.sines[rows]

    def of_all(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return those of all layers.  positions: # [rows] → # [rows, head_dim / 2] or [layers, 1, ...] twice."""
        starts = torch.tensor(self.first, device=positions.device)[:, None, None]
        rows = starts + positions if any(self.first) else positions
        return self.cosines[rows], self.sines[rows]


@torch.inference_mode(mode=False)  # a tensor made in inference mode could not be written outside it
def lengthened(tensor: torch.Tensor, dimension: int, length: int) -> torch.Tensor:
    """Return a copy of a tensor that is longer in one dimension, with zeros at its end."""
    shape = list(tensor.shape)
    shape[dimension] = length
    longer = torch.zeros(shape, dtype=tensor.dtype, device=tensor.device)
    longer.narrow(dimension, 0, tensor.shape[dimension]).copy_(tensor)
    return longer


class TorchCache(TreeCache):
    """Keys and values of one sequence.

    Keys are also stored before rotation. A moved key is rotated from that original, so no error adds up.

    Attributes:
        keys: Rotated keys.  # [layers, kv_heads, slots, head_dim]
        plain_keys: Keys before rotation.  # same shape
        values: Values.  # same shape
    """

    __slots__ = ("_angles", "keys", "plain_keys", "values")

    def __init__(self, shape: ModelShape, capacity: int, dtype: torch.dtype, angles: Angles) -> None:
        empty = (shape.layers, shape.kv_heads, 0, shape.head_dim)
        self.keys, self.plain_keys, self.values = (
            torch.zeros(empty, dtype=dtype, device=angles.cosines.device) for _ in range(3)
        )
        super().__init__(min(capacity, shape.max_positions))
        self._angles = angles

    @property
    def size_bytes(self) -> int:
        """Allocated memory."""
        return 3 * self.keys.nbytes

    def resize(self, slots: int) -> None:
        """Allocate slots, and copy the content of the old ones."""
        stores = (self.keys, self.plain_keys, self.values)
        self.keys, self.plain_keys, self.values = (lengthened(store, 2, slots) for store in stores)

    def write(
        self, layer: int, slots: torch.Tensor, plain: torch.Tensor, rotated: torch.Tensor, v: torch.Tensor
    ) -> None:
        """Write rows of one layer to their slots.  slots: # [rows]; the others: # [kv_heads, rows, head_dim]."""
        self.plain_keys[layer].index_copy_(1, slots, plain)
        self.keys[layer].index_copy_(1, slots, rotated)
        self.values[layer].index_copy_(1, slots, v)

    def copy_slots(self, sources: IntArray, targets: IntArray) -> None:
        """Copy slots as if all at once.  # [slots] twice."""
        source, to = (torch.as_tensor(slots.astype(np.int64), device=self.keys.device) for slots in (sources, targets))
        for store in (self.keys, self.plain_keys, self.values):
            store[:, :, to] = store[:, :, source]

    def rearrange(self, sources: IntArray) -> None:
        """Fill slots 0 .. len(sources)-1 from old slots; keys are rotated from their unrotated originals."""
        self.reserve(len(sources))
        moved = np.flatnonzero((sources >= 0) & (sources != np.arange(len(sources))))
        to = torch.as_tensor(moved, device=self.keys.device)
        source = torch.as_tensor(sources[moved].astype(np.int64), device=self.keys.device)
        self.values[:, :, to] = self.values[:, :, source]
        plain = self.plain_keys[:, :, source]
        self.plain_keys[:, :, to] = plain
        self.keys[:, :, to] = rotate(plain, *self._angles.of_all(to))
        self.settle(len(sources))
