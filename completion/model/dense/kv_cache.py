"""Cache of keys and values in torch, exact or in 8 bits: one tensor for all layers; slots are positions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from completion.memory import Held
from completion.model.architecture import Architecture
from completion.model.causal_model import ModelShape
from completion.model.dense.held_tensors import held_by
from completion.model.dense.quantized_linear import rounded_rows
from completion.model.draft_rows import TreeCache
from completion.model.rotary import RotaryTables
from drafting.arrays import IntArray


def rotate(keys: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Turn channel pairs (i, i + head_dim/2) by their angle, in float32 ("RoFormer", equation 34).

    keys: # [..., rows, head_dim]; cosines, sines: # [rows, head_dim / 2]
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
        starts: The same on the device.  # int64 [layers]
    """

    cosines: Tensor
    sines: Tensor
    first: tuple[int, ...]
    starts: Tensor

    @classmethod
    def of(cls, architecture: Architecture, device: str) -> Angles:
        """Return a model's angles on a device."""
        tables = RotaryTables(architecture, architecture.max_positions)
        cosines, sines = (torch.from_numpy(table).to(device) for table in (tables.cosines, tables.sines))
        first = tuple(architecture.first_angles)
        return cls(cosines, sines, first, torch.tensor(first, device=device))

    def of_layer(self, layer: int, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return cosines and sines of one layer.  positions: # [rows] → # [rows, head_dim / 2] twice."""
        rows = positions + self.first[layer] if self.first[layer] else positions
        return self.cosines[rows], self.sines[rows]

    def of_all(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return those of all layers.  positions: # [rows] → # [rows, head_dim / 2] or [layers, 1, ...] twice."""
        rows = self.starts[:, None, None] + positions if any(self.first) else positions
        return self.cosines[rows], self.sines[rows]


def indices(values: npt.NDArray[np.integer[Any]], device: torch.device | str) -> Tensor:
    """Return numbers as torch takes them for indices, on a device.  # int64."""
    return torch.from_numpy(values.astype(np.int64)).to(device)


class Store(ABC):
    """Tensors of keys and values, by name.

    Attributes:
        angles: Rotary angles, if our own attention rotates the keys.
        device: Where they are.
        tensors: Each with a row a slot.  # [layers or 1, kv_heads or 1, slots, width]
    """

    __slots__ = ("angles", "device", "tensors")
    angles: Angles

    def __init__(self, shape: ModelShape, device: torch.device, kinds: Mapping[str, tuple[int, torch.dtype]]) -> None:
        self.device = device
        self.tensors = {
            name: torch.zeros((shape.layers, shape.kv_heads, 0, width), dtype=dtype, device=device)
            for name, (width, dtype) in kinds.items()
        }

    @torch.inference_mode(mode=False)  # a tensor made in inference mode could not be written outside it
    def resize(self, slots: int) -> None:
        """Allocate slots, and copy the content of the old ones."""
        longer = {name: old.new_zeros((*old.shape[:2], slots, old.shape[3])) for name, old in self.tensors.items()}
        for name, old in self.tensors.items():
            longer[name][:, :, : old.shape[2]] = old
        self.tensors = longer

    def copy(self, sources: Tensor, targets: Tensor) -> None:
        """Copy slots as if all at once.  # [slots] twice."""
        for tensor in self.tensors.values():
            tensor[:, :, targets] = tensor[:, :, sources]

    def move(self, sources: Tensor, targets: Tensor) -> None:
        """Copy slots as if all at once, and turn their keys to their new positions.  # [slots] twice."""
        self.copy(sources, targets)
        self.turn(targets)

    @abstractmethod
    def turn(self, slots: Tensor) -> None:
        """Turn the keys of moved slots to the positions that equal them.  # [slots]."""

    @abstractmethod
    def write(self, layer: int, slots: Tensor, positions: Tensor, plain: Tensor, rotated: Tensor, v: Tensor) -> None:
        """Write rows of one layer.  slots, positions: # [rows]; the others: # [kv_heads, rows, head_dim]."""

    def read(self, layer: int, span: int) -> tuple[Tensor, Tensor]:
        """Return the rotated keys and the values of the first slots.  # [kv_heads, span, head_dim] twice."""
        return self.tensors["keys"][layer, :, :span], self.tensors["values"][layer, :, :span]


class ExactStore(Store):
    """Keys and values as they were computed.

    Keys are also stored before rotation. A moved key is rotated from that original, so no error adds up.
    """

    __slots__ = ()

    def __init__(self, shape: ModelShape, dtype: torch.dtype, angles: Angles) -> None:
        self.angles = angles
        super().__init__(
            shape, angles.cosines.device, dict.fromkeys(("keys", "plain_keys", "values"), (shape.head_dim, dtype))
        )

    def turn(self, slots: Tensor) -> None:
        """See `Store`."""
        plain = self.tensors["plain_keys"][:, :, slots]
        self.tensors["keys"][:, :, slots] = rotate(plain, *self.angles.of_all(slots))

    def write(self, layer: int, slots: Tensor, positions: Tensor, plain: Tensor, rotated: Tensor, v: Tensor) -> None:  # noqa: ARG002
        """See `Store`."""
        for name, rows in (("keys", rotated), ("plain_keys", plain), ("values", v)):
            self.tensors[name][layer].index_copy_(1, slots, rows)


class Int8Store(Store):
    """Keys before rotation and values in 8 bits, with a scale a token and head; keys are rotated when they are read.

    A model's key bias makes a few channels large and constant (Qwen2's most of all), which would leave few steps for
    the others. It is therefore removed before keys are rounded.

    Attributes:
        biases: Biases of the keys.  # [layers, kv_heads, 1, head_dim]
    """

    __slots__ = ("_dtype", "biases")

    def __init__(self, shape: ModelShape, dtype: torch.dtype, angles: Angles, biases: Tensor) -> None:
        rounded, scales = (shape.head_dim, torch.int8), (1, torch.float32)
        kinds = {"keys": rounded, "key_scales": scales, "values": rounded, "value_scales": scales}
        self.angles = angles
        super().__init__(shape, angles.cosines.device, kinds)
        self.tensors["positions"] = torch.zeros((1, 1, 0, 1), dtype=torch.int64, device=self.device)
        self._dtype, self.biases = dtype, biases.float()

    def turn(self, slots: Tensor) -> None:
        """See `Store`."""
        self.tensors["positions"][0, 0, slots, 0] = slots

    def write(self, layer: int, slots: Tensor, positions: Tensor, plain: Tensor, rotated: Tensor, v: Tensor) -> None:  # noqa: ARG002
        """See `Store`."""
        self.tensors["positions"][0, 0, :, 0].index_copy_(0, slots, positions)
        for name, rows in (("key", plain.float() - self.biases[layer]), ("value", v.float())):
            values, scales = rounded_rows(rows)
            self.tensors[f"{name}s"][layer].index_copy_(1, slots, values)
            self.tensors[f"{name}_scales"][layer].index_copy_(1, slots, scales)

    def read(self, layer: int, span: int) -> tuple[Tensor, Tensor]:
        """See `Store`."""
        parts = ("keys", "key_scales", "values", "value_scales")
        keys, key_scales, values, value_scales = (self.tensors[name][layer, :, :span] for name in parts)
        plain = keys * key_scales + self.biases[layer]
        angles = self.angles.of_layer(layer, self.tensors["positions"][0, 0, :span, 0])
        return rotate(plain, *angles).to(self._dtype), (values * value_scales).to(self._dtype)


class TorchCache(TreeCache):
    """Keys and values of one sequence in a store."""

    __slots__ = ("store",)

    def __init__(self, shape: ModelShape, capacity: int, store: Store) -> None:
        self.store = store
        super().__init__(min(capacity, shape.max_positions))

    def held(self) -> Held:
        """Return where its memory is."""
        return held_by(self.store.tensors.values())

    def resize(self, slots: int) -> None:
        """Allocate slots, and copy the content of the old ones."""
        self.store.resize(slots)

    def copy_slots(self, sources: IntArray, targets: IntArray) -> None:
        """Copy slots as if all at once.  # [slots] twice."""
        self.store.copy(indices(sources, self.store.device), indices(targets, self.store.device))

    def rearrange(self, sources: IntArray) -> None:
        """Fill slots 0 .. len(sources)-1 from old slots; keys are rotated from their unrotated originals."""
        self.reserve(len(sources))
        moved = np.flatnonzero((sources >= 0) & (sources != np.arange(len(sources))))
        if len(moved):
            self.store.move(indices(sources[moved], self.store.device), indices(moved, self.store.device))
        self.settle(len(sources))
