"""Moves of slots within a cache: keys and values are copied, and keys rotated anew from their unrotated originals."""

from __future__ import annotations

from numba import njit

from completion.model.int8.kernels.sizes import BLOCK_SLOTS, LANES, VALUE_CHANNELS
from completion.model.int8.kernels.vector import (
    load_bfloats,
    load_floats,
    load_int,
    load_ints,
    store_bfloats,
    store_int,
    store_ints,
)
from completion.model.int8.kernels.views import CacheView
from drafting.arrays import IntArray
from drafting.machine_code.functions import entry, inner

_LINE = 4 * LANES
"""Bytes of a vector register, and of a group of 32 bfloat16 values."""


@entry
def move_slots(view: CacheView, sources: IntArray, targets: IntArray, scratch: IntArray, first: int, step: int) -> None:
    """Copy slots as if all were copied at once, for every `step`-th layer from `first` on.

    Args:
        view: Read and written.
        sources: Slots to read.  # [moves]
        targets: Slots to write, each once.  # [moves]
        scratch: Scratch for a run of rows and one more.  # uint16 [at least moves + 1, head_dim]
        first: First layer.
        step: Distance between layers: the number of threads that share the work.
    """
    layers, heads, slots, head_dim = view.plain_keys.shape
    keys, plain, values = view.keys.ctypes.data, view.plain_keys.ctypes.data, view.values.ctypes.data
    bytes_of_head, scratch_at = 2 * slots * head_dim, scratch.ctypes.data
    rotated = scratch_at + 2 * head_dim * len(sources)
    for layer in range(first, layers, step):
        for head in range(heads):
            start = (layer * heads + head) * bytes_of_head
            _copy_rows(plain + start, sources, targets, 2 * head_dim, scratch_at)
            for index, target in enumerate(targets):
                _rotate(scratch_at + index * 2 * head_dim, target + view.first_angles[layer], view, rotated)
                _scatter(rotated, target, keys + start, head_dim)
            for part in range(head_dim // VALUE_CHANNELS):
                _copy_rows(values + start + part * slots * _LINE, sources, targets, _LINE, scratch_at)


@inner
def _copy_rows(rows: int, sources: IntArray, targets: IntArray, width: int, scratch: int) -> None:
    """Copy rows of `width` bytes through `scratch`, which then holds them in the order of `sources`."""
    for index, source in enumerate(sources):
        for byte in range(0, width, _LINE):
            store_ints(scratch + index * width + byte, load_ints(rows + source * width + byte))
    for index, target in enumerate(targets):
        for byte in range(0, width, _LINE):
            store_ints(rows + target * width + byte, load_ints(scratch + index * width + byte))


@njit(inline="always")
def _rotate(plain: int, angle: int, view: CacheView, out: int) -> None:
    """Rotate a key by a row of angles ("RoFormer", equation 34).  plain, out: bfloat16 [head_dim]."""
    half = view.cosines.shape[1]
    cosines, sines = view.cosines.ctypes.data + 4 * half * angle, view.sines.ctypes.data + 4 * half * angle
    for i in range(0, half, LANES):
        left, right = load_bfloats(plain + 2 * i), load_bfloats(plain + 2 * (i + half))
        cosine, sine = load_floats(cosines + 4 * i), load_floats(sines + 4 * i)
        store_bfloats(out + 2 * i, left * cosine - right * sine)
        store_bfloats(out + 2 * (i + half), right * cosine + left * sine)


@njit(inline="always")
def _scatter(key: int, slot: int, keys: int, head_dim: int) -> None:
    """Write a key's channel pairs into its block of keys."""
    at = keys + (slot // BLOCK_SLOTS) * 2 * BLOCK_SLOTS * head_dim + 4 * (slot % BLOCK_SLOTS)
    for pair in range(head_dim // 2):
        store_int(at + pair * 4 * BLOCK_SLOTS, load_int(key + 4 * pair))
