"""Draft trees scored in fixed shapes, so that a GPU replays one captured graph a step instead of launching kernels.

Rows are padded to 1, 2, 4, .. 64 and the past to whole spans of slots; everything that differs between two steps of one
shape travels in one small integer tensor. Without a GPU the same fixed-shape step runs uncaptured.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from completion.model.causal_model import KVCache
from completion.model.dense.dense_transformer import DenseTransformer, Rows
from completion.model.dense.kv_cache import TorchCache
from completion.model.dense.torch_logits import TorchLogits
from completion.model.draft_rows import ancestors_of, depths_of
from drafting.arrays import IntArray

MAX_BUCKET = 64
SPAN_SLOTS = 1024
"""A step looks at a whole number of these; more of them would mean more graphs, fewer would mean more masked slots."""


class StaticStep:
    """One shape of step on one cache: captured at its first run on a GPU, replayed from then on.

    The captured graph holds the addresses of the cache's tensors, and a cache drops its steps when these move.
    """

    def __init__(self, model: DenseTransformer, rows: int, span: int) -> None:
        self._model, self._rows, self._span = model, rows, span
        device = torch.device(model.device)
        self._host = torch.zeros(2 * rows + 1 + rows * rows, dtype=torch.int64, pin_memory=device.type == "cuda")
        self._inputs = self._host.to(device, copy=True)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._logits = torch.empty(0)

    def run(self, tokens: IntArray, parents: IntArray, cache: TorchCache) -> torch.Tensor:
        """Logits of a tree on top of the cache's past; always the same cache.  # [rows, vocabulary]."""
        self._fill(tokens, parents, cache.length)
        self._inputs.copy_(self._host, non_blocking=True)
        if self._inputs.device.type != "cuda":
            return self._compute(cache)[: len(tokens)]
        if self._graph is None:
            self._capture(cache)
        self._graph.replay()  # type: ignore[union-attr]
        return self._logits[: len(tokens)].clone()

    def _fill(self, tokens: IntArray, parents: IntArray, length: int) -> None:
        """Tokens, depths, the past's length, and which row descends from which; padding rows see only themselves."""
        count, rows, depths = len(tokens), self._rows, depths_of(parents)
        values = self._host.numpy()
        values[:] = 0
        values[:count], values[rows : rows + count], values[2 * rows] = tokens, depths, length
        lineage = values[2 * rows + 1 :].reshape(rows, rows)
        np.fill_diagonal(lineage, 1)
        row, depth = np.nonzero((ancestors := ancestors_of(parents, depths)) >= 0)
        lineage[row, ancestors[row, depth]] = 1

    def _compute(self, cache: TorchCache) -> torch.Tensor:
        rows, inputs = self._rows, self._inputs
        tokens, depths, length = inputs[:rows], inputs[rows : 2 * rows], inputs[2 * rows]
        lineage = inputs[2 * rows + 1 :].view(rows, rows) > 0
        places = torch.arange(self._span, device=inputs.device) - length  # slots counted from the end of the past
        in_tree = (places >= 0) & (places < rows)
        visible = (places < 0) | (in_tree & lineage[:, places.clamp(0, rows - 1)])  # [rows, span]
        mask = torch.zeros(visible.shape, device=inputs.device).masked_fill(~visible, -math.inf)
        slots = length + torch.arange(rows, device=inputs.device)
        embedded = self._model.weights.embeddings[tokens]
        return self._model.logits(self._model.forward(Rows(embedded, slots, length + depths, mask), cache))

    def _capture(self, cache: TorchCache) -> None:
        """Record the step's kernels, after a run aside that lets libraries set themselves up."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self._compute(cache)
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._logits = self._compute(cache)


class GraphedCache(TorchCache):
    """Keys and values in whole spans of slots, with room for a padded tree at the end, and the steps that use them."""

    __slots__ = ("steps",)

    def resize(self, slots: int) -> None:
        """Allocate slots; the steps captured on the old tensors go with them."""
        self.steps: dict[tuple[int, int], StaticStep] = {}
        super().resize(-(-(slots + MAX_BUCKET) // SPAN_SLOTS) * SPAN_SLOTS)


class GraphedTransformer(DenseTransformer):
    """The torch decoder with draft trees in fixed shapes."""

    def new_cache(self, capacity: int) -> GraphedCache:
        """An empty cache that may have `capacity` slots; see `CausalModel.new_cache`."""
        return GraphedCache(self.shape, capacity, self.weights.embeddings.dtype, self._cosines, self._sines)

    @torch.inference_mode()
    def score(self, tokens: IntArray, parents: IntArray, cache: KVCache) -> TorchLogits:
        """Compute a draft tree on top of the past and of kept rows; see `CausalModel.score`."""
        cache = self.own(cache, cache.length + cache.kept + len(tokens))
        if (
            not isinstance(cache, GraphedCache) or len(tokens) > MAX_BUCKET or cache.kept
        ):  # kept rows come in too many numbers for fixed shapes
            return super().score(tokens, parents, cache)
        rows = 1 << (len(tokens) - 1).bit_length()
        span = -(-(cache.length + rows) // SPAN_SLOTS) * SPAN_SLOTS
        if (rows, span) not in cache.steps:
            cache.steps[rows, span] = StaticStep(self, rows, span)
        logits = cache.steps[rows, span].run(tokens, parents, cache)
        cache.parents = parents
        return TorchLogits(logits)
