"""Attention over a past and a tree as kernels. A read of the keys serves all rows of a tile.

They are in Triton, which torch brings for GPUs. The tests run them in Triton's interpreter and compile them for GPUs;
none has run them.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from completion.model.architecture import Architecture
from completion.model.dense.attention import Kernels, Sight
from completion.model.dense.kernels.keys import VARYING, TurnedStore, stored_tensors, write
from completion.model.dense.kv_cache import Int8Store, Store

NOTHING: tl.constexpr = tl.constexpr(-1e30)
"""Score of a slot that is not seen. Unlike −∞ it has a difference from itself."""
MAX_TILE = 64
"""Maximum number of query rows that share a read of the keys; half of it for heads of 256 channels, for registers."""
SLOTS_TILE = 32
"""Slots that a program reads at once."""
PROGRAMS = 256
"""Number of programs that a pass should have at least, so that a large GPU is busy: 132 processors of an H100."""
MAX_PARTS = 32
"""Maximum number of parts in which a span is read by programs of their own, a power of two."""


@triton.jit
def _halves(source: tl.tensor, rows: tl.tensor, exist: tl.tensor, WIDTH: tl.constexpr) -> tuple[tl.tensor, tl.tensor]:
    """Return the halves of rows of a matrix.  rows, exist: # [rows] → # [rows, WIDTH / 2] twice."""
    at = source + rows[:, None] * WIDTH + tl.arange(0, WIDTH // 2)[None, :]
    left = tl.load(at, mask=exist[:, None], other=0)
    return left, tl.load(at + WIDTH // 2, mask=exist[:, None], other=0)


@triton.jit
def _widened(
    left: tl.tensor,
    right: tl.tensor,
    scales: tl.tensor,
    bias: tl.tensor,
    positions: tl.tensor,
    cosines: tl.tensor,
    sines: tl.tensor,
    dtype: tl.dtype,
    WIDTH: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:
    """Return the rotated halves of keys in 8 bits.  left, right: # [slots, WIDTH / 2]; scales, positions: # [slots]."""
    pair = tl.arange(0, WIDTH // 2)
    left = left.to(tl.float32) * scales[:, None] + tl.load(bias + pair)[None, :]
    right = right.to(tl.float32) * scales[:, None] + tl.load(bias + WIDTH // 2 + pair)[None, :]
    angle = positions[:, None] * (WIDTH // 2) + pair[None, :]
    cosine, sine = tl.load(cosines + angle), tl.load(sines + angle)
    return (left * cosine - right * sine).to(dtype), (right * cosine + left * sine).to(dtype)


@triton.jit
def _seen(
    position: tl.tensor,
    limit: tl.tensor,
    lines: tl.tensor,
    exists: tl.tensor,
    slot: tl.tensor,
    inside: tl.tensor,
    start: tl.tensor,
    columns: tl.int32,
    TREE: tl.constexpr,
    WINDOW: tl.constexpr,
) -> tl.tensor:
    """Return which slots each query row sees, as `Sight.mask` does.  lines: its distances; # [rows, slots]."""
    seen = (slot[None, :] < limit[:, None]) & inside[None, :]
    distance = position[:, None] - slot[None, :] + 1
    if TREE:
        column = slot - start
        in_tree = (column >= 0) & (column < columns) & inside
        at = lines[:, None] + column[None, :]
        among = tl.load(at, mask=exists[:, None] & in_tree[None, :], other=0).to(tl.int32)
        seen = seen | (among > 0)
        distance = tl.where(in_tree[None, :], among, distance)
    if WINDOW > 0:
        seen = seen & (distance <= WINDOW)
    return seen


@triton.jit(do_not_specialize=VARYING)
def attend(
    q: tl.tensor,
    keys: tl.tensor,
    key_scales: tl.tensor,
    key_biases: tl.tensor,
    key_positions: tl.tensor,
    values: tl.tensor,
    value_scales: tl.tensor,
    cosines: tl.tensor,
    sines: tl.tensor,
    positions: tl.tensor,
    limits: tl.tensor,
    tree_start: tl.tensor,
    tree_end: tl.tensor,
    distances: tl.tensor,
    sums: tl.tensor,
    totals: tl.tensor,
    largest: tl.tensor,
    rows: tl.int32,
    folded: tl.int32,
    columns: tl.int32,
    slots: tl.int32,
    scale: tl.float32,
    WIDTH: tl.constexpr,
    TILE: tl.constexpr,
    SLOTS: tl.constexpr,
    TREE: tl.constexpr,
    WINDOW: tl.constexpr,
    INT8: tl.constexpr,
) -> None:
    """Sum the values of a part of the slots for a tile of the query rows of a KV head.

    Sums of parts are joined by their largest scores, as in "FlashAttention", section 3.1. Rotary pairs are channels i
    and i + WIDTH / 2, so the two halves of a head are multiplied apart.

    `q` has `folded` rotated queries: query heads that share a KV head, times rows.  # [kv_heads, folded, WIDTH]
    From `keys` to `sines` the tensors are those of `StoredTensors`, from `positions` to `distances` those of `Sight`.
    `columns` is the number of rows of the tree.
    `sums` receives weighted sums of values.  # float32 [kv_heads, parts, folded, WIDTH]
    `totals` receives sums of weights, `largest` the largest scores.  # float32 [kv_heads, parts, folded] twice
    A program has TILE query rows, and reads SLOTS slots at once. A row sees WINDOW last positions, all if that is 0.
    """
    head, tile, part, parts = tl.program_id(0), tl.program_id(1), tl.program_id(2), tl.num_programs(2)
    channel = tl.arange(0, WIDTH)
    query = tile * TILE + tl.arange(0, TILE)
    exists = query < folded
    row = query % rows
    position = tl.load(positions + row).to(tl.int32)
    limit = tl.load(limits + row).to(tl.int32)
    start, last = tl.load(tree_start).to(tl.int32), tl.load(tree_end).to(tl.int32)
    first = 0
    if not TREE:
        last = tl.minimum(last, tl.max(limit, 0))
    if WINDOW > 0:
        first = tl.maximum(0, tl.min(position, 0) - WINDOW + 1)
    share = tl.cdiv(tl.cdiv(last - first, parts), SLOTS) * SLOTS
    q_left, q_right = _halves(q, head * folded + query, exists, WIDTH)
    best = tl.full([TILE], NOTHING, tl.float32)
    total = tl.zeros([TILE], tl.float32)
    summed = tl.zeros([TILE, WIDTH], tl.float32)
    for at in range(first + part * share, tl.minimum(first + (part + 1) * share, last), SLOTS):
        slot = at + tl.arange(0, SLOTS)
        inside = slot < last
        lines = distances + row * columns
        seen = _seen(position, limit, lines, exists, slot, inside, start, columns, TREE, WINDOW)
        stored = head * slots + slot
        k_left, k_right = _halves(keys, stored, inside, WIDTH)
        value = tl.load(values + stored[:, None] * WIDTH + channel[None, :], mask=inside[:, None], other=0)
        if INT8:
            key_scale = tl.load(key_scales + stored, mask=inside, other=0.0)
            moved_to = tl.load(key_positions + slot, mask=inside, other=0).to(tl.int32)
            bias = key_biases + head * WIDTH
            k_left, k_right = _widened(k_left, k_right, key_scale, bias, moved_to, cosines, sines, q_left.dtype, WIDTH)
            value_scale = tl.load(value_scales + stored, mask=inside, other=0.0)
            value = (value.to(tl.float32) * value_scale[:, None]).to(q_left.dtype)
        scores = tl.dot(q_left, tl.trans(k_left), input_precision="ieee")
        scores = tl.dot(q_right, tl.trans(k_right), scores, input_precision="ieee") * scale
        scores = tl.where(seen, scores, NOTHING)
        higher = tl.maximum(best, tl.max(scores, 1))
        weights = tl.where(seen, tl.exp(scores - higher[:, None]), 0.0)
        shrunk = tl.exp(best - higher)
        total = total * shrunk + tl.sum(weights, 1)
        summed = summed * shrunk[:, None] + tl.dot(weights.to(value.dtype), value, input_precision="ieee")
        best = higher
    found = (head * parts + part) * folded + query
    tl.store(totals + found, total, mask=exists)
    tl.store(largest + found, best, mask=exists)
    tl.store(sums + found[:, None] * WIDTH + channel[None, :], summed, mask=exists[:, None])


@triton.jit(do_not_specialize=VARYING)
def join(
    sums: tl.tensor,
    totals: tl.tensor,
    largest: tl.tensor,
    out: tl.tensor,
    rows: tl.int32,
    folded: tl.int32,
    parts: tl.int32,
    WIDTH: tl.constexpr,
    PARTS: tl.constexpr,
) -> None:
    """Join the sums of all parts of `attend` for one query row.  out: # [rows, heads, WIDTH]."""
    head, query = tl.program_id(0), tl.program_id(1)
    part, channel = tl.arange(0, PARTS), tl.arange(0, WIDTH)
    exists = part < parts
    found = (head * parts + part) * folded + query
    best = tl.load(largest + found, mask=exists, other=NOTHING)
    weights = tl.where(exists, tl.exp(best - tl.max(best, 0)), 0.0)
    total = tl.sum(tl.load(totals + found, mask=exists, other=0.0) * weights, 0)
    summed = tl.load(sums + found[:, None] * WIDTH + channel[None, :], mask=exists[:, None], other=0.0)
    joined = tl.sum(summed * weights[:, None], 0) / total
    shared = folded // rows  # query heads of a KV head
    place = query % rows * shared * tl.num_programs(0) + head * shared + query // rows
    tl.store(out + place * WIDTH + channel, joined.to(out.dtype.element_ty))


def supported(architecture: Architecture) -> bool:
    """Return whether the kernels have this model's heads: 32, 64, 128 or 256 channels."""
    return architecture.head_dim in {32, 64, 128, 256}


class KernelAttention:
    """Attention by `attend` and `join`; see `PlainAttention`."""

    def __init__(self, sight: Sight, architecture: Architecture) -> None:
        self._sight, self._limits, self._scale = sight, sight.limits.contiguous(), architecture.attention_scale
        self._windowed, self._window = frozenset(architecture.windowed_layers), architecture.window

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, layer: int, store: Store) -> Tensor:
        """See `Attention`."""
        sight, (heads, rows, width), groups = self._sight, q.shape, len(k)
        tensors, int8 = stored_tensors(store, layer), isinstance(store, Int8Store)
        turned, slots = q.new_empty(q.shape), tensors.values.shape[1]
        write[rows, heads + groups](
            q, k, v, turned, *tensors, sight.slots, sight.positions, *q.stride()[:2], *k.stride()[:2], *v.stride()[:2],
            rows, slots, heads, WIDTH=width, INT8=int8,
        )  # fmt: skip
        folded = heads // groups * rows
        tile = min(max(16, triton.next_power_of_2(folded)), MAX_TILE if width < 256 else MAX_TILE // 2)
        tiles = triton.cdiv(folded, tile)
        parts = min(max(1, PROGRAMS // (groups * tiles)), MAX_PARTS, triton.cdiv(sight.span, SLOTS_TILE))
        sums = torch.empty((groups, parts, folded, width), dtype=torch.float32, device=q.device)
        totals, largest = sums.new_empty((2, groups, parts, folded))
        out = turned.new_empty((rows, heads, width))  # as the next product reads it
        attend[groups, tiles, parts](
            turned, tensors.keys, *tensors[2:],
            sight.positions, self._limits, sight.start, sight.end, sight.distances,
            sums, totals, largest, rows, folded, sight.distances.shape[1], slots, self._scale,
            WIDTH=width, TILE=tile, SLOTS=SLOTS_TILE, TREE=sight.distances.shape[1] > 0,
            WINDOW=self._window if layer in self._windowed else 0, INT8=int8,
        )  # fmt: skip
        join[groups, folded](sums, totals, largest, out, rows, folded, parts, WIDTH=width, PARTS=MAX_PARTS)
        return out.transpose(0, 1)


KERNELS = Kernels(KernelAttention, TurnedStore, prefill_rows=512, masks_span=False)
"""The kernels of this module. 512 rows keep a GPU's arithmetic busy, and need 0.3 GB in the layers of a 7B model."""
