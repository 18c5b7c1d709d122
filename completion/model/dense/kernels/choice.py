"""Chooses the kernels of a device: Triton's where they run and give what torch's own operators give."""

from __future__ import annotations

import logging
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import torch

from completion.model.architecture import Architecture
from completion.model.dense.attention import PLAIN, Kernels, Sight
from completion.model.dense.kv_cache import Angles, ExactStore, Int8Store, Store

MAX_DIFFERENCE = 0.02
"""Largest difference of a result, as a share of the largest one. bfloat16 has steps of 0.4 % to 0.8 %."""
_SLOTS, _PAST, _ROWS = 256, 200, 48
logger = logging.getLogger(__name__)


def kernels_for(architecture: Architecture, device: str, *, int8_cache: bool) -> Kernels:
    """Return the kernels of a model on a device of torch. Triton needs a C compiler, which not every machine has."""
    if device != "cuda" or find_spec("triton") is None:
        return PLAIN
    try:
        from completion.model.dense.kernels.tree_attention import KERNELS, supported  # noqa: PLC0415  (it imports Triton)

        if supported(architecture) and agree(KERNELS, architecture, device, torch.bfloat16, int8_cache=int8_cache):
            return KERNELS
        reason = "their results differ, or the model's heads have another size."
    # The boundary to a compiler and a driver: whatever they raise, torch's own operators serve.
    except Exception as error:  # noqa: BLE001
        reason = f"{type(error).__name__}, {error}"
    logger.warning("Triton's kernels are not used: %s", reason)
    return PLAIN


@torch.inference_mode()
def agree(kernels: Kernels, architecture: Architecture, device: str, dtype: torch.dtype, *, int8_cache: bool) -> bool:
    """Return whether kernels compute what torch's operators do, on a random past whose keys were moved."""
    layers = (0,) if architecture.windowed_layers else ()
    small = replace(architecture, layers=1, windowed_layers=layers, max_positions=_SLOTS)
    generator = torch.Generator().manual_seed(0)
    sizes = (small.heads, small.kv_heads, small.kv_heads)
    q, k, v = (torch.randn(n, _ROWS, small.head_dim, generator=generator).to(device, dtype) for n in sizes)
    stored = torch.randn(2, small.kv_heads, _SLOTS, small.head_dim, generator=generator)
    chain = np.maximum(np.arange(_ROWS) - 2, -1).astype(np.int32)
    sights = (
        Sight.of_tree(chain, 0, _PAST, device),
        Sight.of_slots(torch.arange(_PAST, _PAST + _ROWS, device=device), _PAST + _ROWS),
    )
    results = []
    for kind in (PLAIN, kernels):
        store = _filled(small, kind.exact_store, stored.to(device, dtype), int8_cache=int8_cache)
        summed = [kind.attention(sight, small)(q, k, v, 0, store) for sight in sights]
        results.append(torch.cat(summed).float())
    expected, found = results
    return bool((found - expected).abs().max() <= MAX_DIFFERENCE * expected.abs().max())


def _filled(
    architecture: Architecture, exact_store: type[ExactStore], stored: torch.Tensor, *, int8_cache: bool
) -> Store:
    """Return a store of keys, which it has to rotate, and values.  stored: # [2, kv_heads, slots, head_dim]."""
    shape, angles = architecture.shape, Angles.of(architecture, str(stored.device))
    biases = torch.ones((1, shape.kv_heads, 1, shape.head_dim), device=stored.device)
    store = Int8Store(shape, stored.dtype, angles, biases) if int8_cache else exact_store(shape, stored.dtype, angles)
    store.resize(_SLOTS)
    everywhere = torch.arange(_SLOTS, device=stored.device)
    store.write(0, everywhere, everywhere, stored[0], stored[0], stored[1])
    store.turn(everywhere)
    return store
