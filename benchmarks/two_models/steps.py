"""Costs of models' steps, measured in turn, and the progress of a run."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence

import numpy as np

from benchmarks.two_models.listening import chain
from completion.model.causal_model import CausalModel, KVCache

PAST = 1024
"""Number of cached tokens of the steps."""


def step_ms(models: Sequence[tuple[CausalModel, Sequence[int]]], repeats: int) -> list[dict[int, float]]:
    """Return the processor time of each model's steps by their rows: the least of several, which all take turns.

    Other programs lengthen the time of a step, but hardly its processor time. With several threads it is that of all.
    """
    caches = [_past(model, max(rows)) for model, rows in models]
    least: list[dict[int, float]] = [dict.fromkeys(rows, math.inf) for _, rows in models]
    for _ in range(repeats):
        for (model, sizes), cache, own in zip(models, caches, least, strict=True):
            model.score(*chain([0]), cache).argmax()  # not counted: it follows a long step of another model
            for rows in sizes:
                started = time.process_time()
                model.score(*chain([0] * rows), cache).argmax()
                own[rows] = min(own[rows], 1e3 * (time.process_time() - started))
    return least


def _past(model: CausalModel, rows: int) -> KVCache:
    """Return a cache with a past of arbitrary content, and room for some rows."""
    cache = model.new_cache(PAST + rows)
    model.prefill(np.zeros(1, dtype=np.int32), np.array([cache.capacity - rows - 1], dtype=np.int32), cache)
    return cache


def show(progress: str) -> None:
    """Show progress on a terminal."""
    if sys.stderr.isatty():
        print(f"\r{progress:70}\r", end="", file=sys.stderr, flush=True)
