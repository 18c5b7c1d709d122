"""Slots of a cache that are moved, or kept in 8 bits and back.

A moved key is rotated anew from its unrotated original. 8 bits take 0.35 of the memory, for documents that nobody types
in. Unrotated keys are rounded less a mean of their channel, which a projection with a bias makes large and constant. A
scale belongs to a slot, a head, and its key or its value. Means stay, and scales are coarse, so what was rounded is
rounded to nearly the same numbers again: errors do not add up.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from completion.model.int8.kernels.sizes import BLOCK_SLOTS, LANES, VALUE_CHANNELS
from completion.model.int8.kernels.vector import (
    absolute,
    bits_of,
    float_of,
    floats,
    larger,
    largest_of,
    load_bfloats,
    load_byte_floats,
    load_floats,
    load_int,
    load_ints,
    nearest_ints,
    store_bfloats,
    store_bytes,
    store_int,
    store_ints,
)
from completion.model.int8.kernels.views import CacheView, CompressedView
from drafting.arrays import IntArray
from drafting.machine_code.functions import entry, inner

_LINE = 2 * VALUE_CHANNELS
"""Bytes of a slot's group of values, and of a vector register."""
_LEVELS = np.float32(127.0)
_BELOW_EIGHTHS = np.int64(2**20 - 1)  # bits of a float32 after the third of its fraction
_TINY = np.float32(1e-30)


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
                rotate_key(scratch_at + index * 2 * head_dim, target + view.first_angles[layer], view, rotated)
                scatter_key(rotated, target, keys + start, head_dim)
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
def rotate_key(plain: int, angle: int, view: CacheView, out: int) -> None:
    """Rotate a key by a row of angles ("RoFormer", equation 34).  plain, out: bfloat16 [head_dim]."""
    half = view.cosines.shape[1]
    cosines, sines = view.cosines.ctypes.data + 4 * half * angle, view.sines.ctypes.data + 4 * half * angle
    for i in range(0, half, LANES):
        left, right = load_bfloats(plain + 2 * i), load_bfloats(plain + 2 * (i + half))
        cosine, sine = load_floats(cosines + 4 * i), load_floats(sines + 4 * i)
        store_bfloats(out + 2 * i, left * cosine - right * sine)
        store_bfloats(out + 2 * (i + half), right * cosine + left * sine)


@njit(inline="always")
def scatter_key(key: int, slot: int, keys: int, head_dim: int) -> None:
    """Write a key's channel pairs into its block of keys."""
    at = keys + (slot // BLOCK_SLOTS) * 2 * BLOCK_SLOTS * head_dim + 4 * (slot % BLOCK_SLOTS)
    for pair in range(head_dim // 2):
        store_int(at + pair * 4 * BLOCK_SLOTS, load_int(key + 4 * pair))


@entry
def compress_slots(view: CacheView, into: CompressedView, first: int, step: int) -> None:
    """Round the first slots of every `step`-th layer from `first` on.

    Args:
        view: Read.
        into: Written, except for its means; it says how many slots.
        first: First layer.
        step: Distance between layers: the number of threads that share the work.
    """
    layers, heads, slots, head_dim = into.keys.shape
    part_bytes, zeros = _LINE * view.values.shape[3], into.value_means.ctypes.data
    for layer in range(first, layers, step):
        for head in range(heads):
            keys, values = view.plain_keys[layer, head].ctypes.data, view.values[layer, head].ctypes.data
            key_bytes, value_bytes = into.keys[layer, head].ctypes.data, into.values[layer, head].ctypes.data
            means = into.key_means[layer, head].ctypes.data
            for slot in range(slots):
                scale = _scale(_largest(keys, means, head_dim, _TINY))
                _round(keys, means, head_dim, scale, key_bytes)
                into.key_scales[layer, head, slot] = scale
                largest = _TINY
                for part in range(head_dim // VALUE_CHANNELS):
                    largest = _largest(values + part * part_bytes, zeros, VALUE_CHANNELS, largest)
                scale = _scale(largest)
                for part in range(head_dim // VALUE_CHANNELS):
                    group = value_bytes + part * VALUE_CHANNELS
                    _round(values + part * part_bytes, zeros, VALUE_CHANNELS, scale, group)
                into.value_scales[layer, head, slot] = scale
                keys, values = keys + 2 * head_dim, values + _LINE
                key_bytes, value_bytes = key_bytes + head_dim, value_bytes + head_dim


@entry
def expand_slots(compressed: CompressedView, view: CacheView, first: int, step: int) -> None:
    """Write the unrotated keys and the values of a compressed past back; see `compress_slots`."""
    layers, heads, slots, head_dim = compressed.keys.shape
    part_bytes, zeros = _LINE * view.values.shape[3], compressed.value_means.ctypes.data
    for layer in range(first, layers, step):
        for head in range(heads):
            keys, values = view.plain_keys[layer, head].ctypes.data, view.values[layer, head].ctypes.data
            key_bytes, value_bytes = (
                compressed.keys[layer, head].ctypes.data,
                compressed.values[layer, head].ctypes.data,
            )
            means = compressed.key_means[layer, head].ctypes.data
            for slot in range(slots):
                _widen(key_bytes, means, head_dim, compressed.key_scales[layer, head, slot], keys)
                scale = compressed.value_scales[layer, head, slot]
                for part in range(head_dim // VALUE_CHANNELS):
                    group = value_bytes + part * VALUE_CHANNELS
                    _widen(group, zeros, VALUE_CHANNELS, scale, values + part * part_bytes)
                keys, values = keys + 2 * head_dim, values + _LINE
                key_bytes, value_bytes = key_bytes + head_dim, value_bytes + head_dim


@njit(inline="always")
def _largest(at: int, means: int, width: int, least: np.float32) -> np.float32:
    """Return the largest size of bfloat16 numbers less their means, or `least` if that is larger."""
    greatest = floats(least)
    for i in range(0, width, LANES):
        greatest = larger(absolute(load_bfloats(at + 2 * i) - load_floats(means + 4 * i)), greatest)
    return largest_of(greatest)


@njit(inline="always")
def _scale(largest: np.float32) -> np.float32:
    """Return what a step is worth: at least largest / 127, and one of eight numbers between two powers of two."""
    bits = np.int64(bits_of(np.float32(largest / _LEVELS)))
    return float_of(np.int32((bits + _BELOW_EIGHTHS) & ~_BELOW_EIGHTHS))


@njit(inline="always")
def _round(at: int, means: int, width: int, scale: np.float32, out: int) -> None:
    factor = floats(np.float32(1.0) / scale)
    for i in range(0, width, LANES):
        store_bytes(out + i, nearest_ints((load_bfloats(at + 2 * i) - load_floats(means + 4 * i)) * factor))


@njit(inline="always")
def _widen(at: int, means: int, width: int, scale: np.float32, out: int) -> None:
    for i in range(0, width, LANES):
        store_bfloats(out + 2 * i, load_byte_floats(at + i) * floats(scale) + load_floats(means + 4 * i))
