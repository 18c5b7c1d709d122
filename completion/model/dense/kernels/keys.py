"""Rotation and storing of keys as kernels: of new rows, and of moved ones. See `tree_attention`."""

from __future__ import annotations

from typing import NamedTuple

import triton
import triton.language as tl
from torch import Tensor

from completion.model.dense.kv_cache import ExactStore, Int8Store, Store

VARYING = (
    "row_slots", "positions", "limits", "tree_start", "tree_end", "distances", "totals", "largest", "moved",
    "rows", "folded", "columns", "slots", "parts", "count",
)  # fmt: skip
"""Arguments for whose alignment and values nothing is compiled anew: they differ from step to step."""
_ROWS_TILE = 16


class StoredTensors(NamedTuple):
    """What kernels read and write of one layer. What a store does not have is its keys again, and not used.

    Attributes:
        keys: Rotated keys, or keys before rotation in 8 bits.  # [kv_heads, slots, head_dim]
        plain: Keys before rotation of an exact store.  # [kv_heads, slots, head_dim]
        key_scales: Scales of keys in 8 bits.  # float32 [kv_heads, slots, 1]
        key_biases: Biases of keys in 8 bits.  # float32 [kv_heads, 1, head_dim]
        key_positions: Positions of keys in 8 bits.  # int64 [1, 1, slots, 1]
        values: Values.  # [kv_heads, slots, head_dim]
        value_scales: Scales of values in 8 bits.  # float32 [kv_heads, slots, 1]
        cosines: Cosines of the layer's angles.  # float32 [positions or more, head_dim / 2]
        sines: Sines of the layer's angles.  # float32 [positions or more, head_dim / 2]
    """

    keys: Tensor
    plain: Tensor
    key_scales: Tensor
    key_biases: Tensor
    key_positions: Tensor
    values: Tensor
    value_scales: Tensor
    cosines: Tensor
    sines: Tensor


def stored_tensors(store: Store, layer: int) -> StoredTensors:
    """Return the tensors of a layer."""
    tensors, first = store.tensors, store.angles.first[layer]
    tables = store.angles.cosines[first:], store.angles.sines[first:]
    keys, values = tensors["keys"][layer], tensors["values"][layer]
    if not isinstance(store, Int8Store):
        return StoredTensors(keys, tensors["plain_keys"][layer], keys, keys, keys, values, values, *tables)
    scales = tensors["key_scales"][layer], tensors["value_scales"][layer]
    biases, positions = store.biases[layer], tensors["positions"]
    return StoredTensors(keys, keys, scales[0], biases, positions, values, scales[1], *tables)


@triton.jit
def _rounded(x: tl.tensor, scale: tl.tensor) -> tl.tensor:
    """Return values in 8 bits. Halves are rounded up."""
    return tl.floor(x / scale + 0.5).to(tl.int8)


@triton.jit(do_not_specialize=VARYING)
def write(
    q: tl.tensor,
    k: tl.tensor,
    v: tl.tensor,
    turned: tl.tensor,
    keys: tl.tensor,
    plain: tl.tensor,
    key_scales: tl.tensor,
    key_biases: tl.tensor,
    key_positions: tl.tensor,
    values: tl.tensor,
    value_scales: tl.tensor,
    cosines: tl.tensor,
    sines: tl.tensor,
    row_slots: tl.tensor,
    positions: tl.tensor,
    q_head: tl.int32,
    q_row: tl.int32,
    k_head: tl.int32,
    k_row: tl.int32,
    v_head: tl.int32,
    v_row: tl.int32,
    rows: tl.int32,
    slots: tl.int32,
    heads: tl.int32,
    WIDTH: tl.constexpr,
    INT8: tl.constexpr,
) -> None:
    """Rotate a row's query, or write its key and value.

    `q`, `k`, `v` and `turned`, which receives rotated queries, are [heads or kv_heads, rows, WIDTH]. Heads and rows of
    the first three have the given distances, in elements. From `keys` to `sines` the tensors are those of
    `StoredTensors`: keys and values are written, with what belongs to them. `row_slots` and `positions` are those of
    `Sight`. `slots` is the number of allocated slots. INT8 says whether keys and values are stored in 8 bits.
    """
    row, head = tl.program_id(0), tl.program_id(1)
    half: tl.constexpr = WIDTH // 2
    pair, channel = tl.arange(0, half), tl.arange(0, WIDTH)
    position, slot = tl.load(positions + row), tl.load(row_slots + row)
    cosine, sine = tl.load(cosines + position * half + pair), tl.load(sines + position * half + pair)
    if head < heads:
        q_at = q + head * q_head + row * q_row + pair
        q_left, q_right = tl.load(q_at).to(tl.float32), tl.load(q_at + half).to(tl.float32)
        turned_at = turned + (head * rows + row) * WIDTH + pair
        tl.store(turned_at, (q_left * cosine - q_right * sine).to(turned.dtype.element_ty))
        tl.store(turned_at + half, (q_right * cosine + q_left * sine).to(turned.dtype.element_ty))
    else:
        group = head - heads
        stored = group * slots + slot
        at = k + group * k_head + row * k_row + pair
        left, right = tl.load(at), tl.load(at + half)
        value = tl.load(v + group * v_head + row * v_row + channel)
        into = stored * WIDTH + pair
        if INT8:
            bias = key_biases + group * WIDTH + pair
            left, right = left.to(tl.float32) - tl.load(bias), right.to(tl.float32) - tl.load(bias + half)
            largest = tl.maximum(tl.max(tl.abs(left), 0), tl.max(tl.abs(right), 0))
            scale = tl.maximum(largest, 1e-12) / 127
            tl.store(keys + into, _rounded(left, scale))
            tl.store(keys + into + half, _rounded(right, scale))
            tl.store(key_scales + stored, scale)
            tl.store(key_positions + slot, position)  # the same in every group
            value = value.to(tl.float32)
            value_scale = tl.maximum(tl.max(tl.abs(value), 0), 1e-12) / 127
            tl.store(values + stored * WIDTH + channel, _rounded(value, value_scale))
            tl.store(value_scales + stored, value_scale)
        else:
            tl.store(plain + into, left)
            tl.store(plain + into + half, right)
            left, right = left.to(tl.float32), right.to(tl.float32)
            tl.store(keys + into, (left * cosine - right * sine).to(keys.dtype.element_ty))
            tl.store(keys + into + half, (right * cosine + left * sine).to(keys.dtype.element_ty))
            tl.store(values + stored * WIDTH + channel, value)


@triton.jit(do_not_specialize=VARYING)
def turn(
    plain: tl.tensor,
    keys: tl.tensor,
    moved: tl.tensor,
    starts: tl.tensor,
    cosines: tl.tensor,
    sines: tl.tensor,
    count: tl.int32,
    slots: tl.int32,
    kv_heads: tl.int32,
    HALF: tl.constexpr,
    PAIRS: tl.constexpr,
    TILE: tl.constexpr,
) -> None:
    """Rotate the keys of moved slots to the slots' positions ("RoFormer", equation 34).

    `plain` has keys before rotation, `keys` receives rotated ones.  # [layers, kv_heads, slots, 2 · HALF] twice
    `moved` are `count` slots. `starts` is each layer's first row in the tables `cosines` and `sines`.
    PAIRS is the power of two from HALF on, TILE the number of slots of a program.
    """
    head, tile = tl.program_id(0), tl.program_id(1)
    index, pair = tile * TILE + tl.arange(0, TILE), tl.arange(0, PAIRS)
    exists = (index < count)[:, None] & (pair < HALF)[None, :]
    slot = tl.load(moved + index, mask=index < count, other=0)
    angle = (tl.load(starts + head // kv_heads) + slot)[:, None] * HALF + pair[None, :]
    cosine, sine = tl.load(cosines + angle, mask=exists, other=0.0), tl.load(sines + angle, mask=exists, other=0.0)
    at = (head.to(tl.int64) * slots + slot)[:, None] * (2 * HALF) + pair[None, :]
    left = tl.load(plain + at, mask=exists, other=0.0).to(tl.float32)
    right = tl.load(plain + at + HALF, mask=exists, other=0.0).to(tl.float32)
    tl.store(keys + at, (left * cosine - right * sine).to(keys.dtype.element_ty), mask=exists)
    tl.store(keys + at + HALF, (right * cosine + left * sine).to(keys.dtype.element_ty), mask=exists)


class TurnedStore(ExactStore):
    """Keys and values as they were computed, whose moved keys `turn` rotates."""

    __slots__ = ()

    def turn(self, slots: Tensor) -> None:
        """See `Store`."""
        keys, angles = self.tensors["keys"], self.angles
        layers, kv_heads, allocated, width = keys.shape
        turn[layers * kv_heads, triton.cdiv(len(slots), _ROWS_TILE)](
            self.tensors["plain_keys"],
            keys,
            slots,
            angles.starts,
            angles.cosines,
            angles.sines,
            len(slots),
            allocated,
            kv_heads,
            HALF=width // 2,
            PAIRS=triton.next_power_of_2(width // 2),
            TILE=_ROWS_TILE,
        )
