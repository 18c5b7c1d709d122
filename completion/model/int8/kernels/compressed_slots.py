"""Keys and values of a past in 8 bits, and back: 0.35 of the memory, for documents that nobody types in.

Unrotated keys are rounded less a mean of their channel, which a projection with a bias makes large and constant. A
scale belongs to a slot, a head, and its key or its value. Means stay, and scales are coarse, so what was rounded is
rounded to nearly the same numbers again: errors do not add up.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from completion.model.int8.kernels.sizes import LANES, VALUE_CHANNELS
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
    nearest_ints,
    store_bfloats,
    store_bytes,
)
from completion.model.int8.kernels.views import CacheView, CompressedView
from drafting.machine_code.functions import entry

_LINE = 2 * VALUE_CHANNELS
"""Bytes of a slot's group of values."""
_LEVELS = np.float32(127.0)
_BELOW_EIGHTHS = np.int64(2**20 - 1)  # bits of a float32 after the third of its fraction
_TINY = np.float32(1e-30)


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
