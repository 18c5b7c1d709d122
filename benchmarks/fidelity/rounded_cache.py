"""A forward pass whose cache is rounded to 8 bits: what such a cache would cost, on the kernels of the one in bfloat16.

Keys before their rotation and values are rounded after each chunk of a prompt, with one scale a token and head. Keys
are rounded less the mean of their channel, which is large where a model's projection of keys has a bias.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from completion.model.int8.cache import Int8Cache
from completion.model.int8.quantized import QuantizedTransformer

_CHUNK = 64
_LEVELS = 127
Floats = npt.NDArray[np.float32]


def channel_means(model: QuantizedTransformer, tokens: npt.NDArray[np.int32]) -> Floats:
    """Return the mean of each channel of a text's unrotated keys.  # [layers, kv_heads, 1, head_dim]."""
    cache = model.new_cache(len(tokens))
    model.prefill(tokens, np.arange(len(tokens), dtype=np.int32), cache)
    means: Floats = _floats(cache.view.plain_keys[:, :, : len(tokens)]).mean(axis=2, keepdims=True)
    return means


def rounded_logits(model: QuantizedTransformer, tokens: npt.NDArray[np.int32], means: Floats) -> Floats:
    """Return the logits of a text, of which each chunk sees those before it through rounded keys and values.

    Args:
        model: The model.
        tokens: The text.  # [tokens]
        means: Means of the keys' channels.  # [layers, kv_heads, 1, head_dim]
    """
    cache, rows = model.new_cache(len(tokens)), list[Floats]()
    for start in range(0, len(tokens), _CHUNK):
        slots = np.arange(start, min(start + _CHUNK, len(tokens)), dtype=np.int32)
        logits = model.prefill(tokens[slots], slots, cache, range(len(slots)))
        rows += [logits.row(row).copy() for row in range(len(slots))]
        _round(cache, slots, means)
    return np.stack(rows)


def _round(cache: Int8Cache, slots: npt.NDArray[np.int32], means: Floats) -> None:
    plain_keys, values = (
        cache.view.plain_keys,
        cache.view.values,
    )  # [layers, heads, slots, head_dim], [.., slots, 16, 2]
    plain_keys[:, :, slots] = _bfloats(_rounded(_floats(plain_keys[:, :, slots]) - means) + means)
    by_slot = np.moveaxis(_floats(values[:, :, :, slots]), 3, 2)
    rounded = _rounded(by_slot.reshape(*by_slot.shape[:3], -1)).reshape(by_slot.shape)
    values[:, :, :, slots] = _bfloats(np.moveaxis(rounded, 2, 3))
    cache.shrink()  # so that the next chunk rotates the rounded keys


def _rounded(numbers: Floats) -> Floats:
    """Round to 8 bits with one scale for the last axis."""
    scales = np.maximum(np.abs(numbers).max(axis=-1, keepdims=True) / _LEVELS, np.finfo(np.float32).tiny)
    rounded: Floats = np.round(numbers / scales) * scales
    return rounded


def _floats(bfloats: npt.NDArray[Any]) -> Floats:
    return (bfloats.astype(np.uint32) << 16).view(np.float32)


def _bfloats(numbers: Floats) -> npt.NDArray[np.uint16]:
    """Return the nearest bfloat16, ties to even."""
    bits = np.ascontiguousarray(numbers, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
