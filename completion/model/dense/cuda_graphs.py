"""Draft trees scored in fixed shapes, so that a GPU replays one captured graph a step instead of launching kernels.

Rows are padded to 1, 2, 4, .. 64, and the past to whole spans of slots. Everything that differs between two steps of
one shape is in one small integer tensor. Without a GPU the same step runs uncaptured.
"""

from __future__ import annotations

import numpy as np
import torch

from completion.model.causal_model import KVCache
from completion.model.dense.dense_transformer import DenseTransformer, Rows, masked
from completion.model.dense.kv_cache import TorchCache
from completion.model.dense.torch_logits import TorchLogits
from completion.model.draft_rows import ancestors_of, depths_of
from drafting.arrays import IntArray

MAX_BUCKET = 64
"""Maximum number of rows of a padded tree; a larger tree is scored without a graph."""
SPAN_SLOTS = 1024
"""Span to which a step's past is rounded up, in slots. Smaller spans need more graphs, larger ones mask more slots."""


class StaticStep:
    """Step of one shape on one cache: captured at its first run on a GPU, replayed from then on.

    The captured graph has the addresses of the cache's tensors, so a cache drops its steps when it reallocates them.
    """

    def __init__(self, model: DenseTransformer, rows: int, span: int) -> None:
        self._model, self._rows, self._span = model, rows, span
        device = torch.device(model.device)
        self._host = torch.zeros(2 * rows + 1 + rows * rows, dtype=torch.int64, pin_memory=device.type == "cuda")
        self._inputs = self._host.to(device, copy=True)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._logits = torch.empty(0)

    def run(self, tokens: IntArray, parents: IntArray, cache: TorchCache) -> torch.Tensor:
        """Return the logits of a tree on top of the past of the cache, always the same one.  # [rows, vocabulary]."""
        self._fill(tokens, parents, cache.length)
        self._inputs.copy_(self._host, non_blocking=True)
        if self._inputs.device.type != "cuda":
            return self._compute(cache)[: len(tokens)]
        if self._graph is None:
            self._capture(cache)
        self._graph.replay()  # type: ignore[union-attr]
        return self._logits[: len(tokens)].clone()

    def _fill(self, tokens: IntArray, parents: IntArray, length: int) -> None:
        """Write tokens, depths, the past's length, and each row's ancestors; padding rows see only themselves."""
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
        offsets = torch.arange(self._span, device=inputs.device) - length  # slots relative to the end of the past
        in_tree = (offsets >= 0) & (offsets < rows)
        visible = (offsets < 0) | (in_tree & lineage[:, offsets.clamp(0, rows - 1)])  # [rows, span]
        masks = masked(visible, self._model.architecture)
        slots = length + torch.arange(rows, device=inputs.device)
        embedded = self._model.embedded(tokens)
        return self._model.logits(self._model.forward(Rows(embedded, slots, length + depths, *masks), cache))

    def _capture(self, cache: TorchCache) -> None:
        """Record the step's kernels, after a run on another stream in which libraries initialise themselves."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self._compute(cache)
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._logits = self._compute(cache)


class GraphedCache(TorchCache):
    """Keys and values in whole spans of slots, with room for a padded tree at the end, and the captured steps."""

    __slots__ = ("steps",)

    def resize(self, slots: int) -> None:
        """Allocate slots, and drop the steps captured on the old tensors."""
        self.steps: dict[tuple[int, int], StaticStep] = {}
        super().resize(-(-(slots + MAX_BUCKET) // SPAN_SLOTS) * SPAN_SLOTS)


class GraphedTransformer(DenseTransformer):
    """The torch decoder, with draft trees in fixed shapes."""

    def new_cache(self, capacity: int) -> GraphedCache:
        """Return an empty cache of at most `capacity` slots; see `CausalModel.new_cache`."""
        return GraphedCache(self.shape, capacity, self.weights.embeddings.dtype, self.angles)

    @torch.inference_mode()
    def score(self, tokens: IntArray, parents: IntArray, cache: KVCache) -> TorchLogits:
        """Compute a draft tree on top of the past and of kept rows; see `CausalModel.score`."""
        cache = self.own(cache, cache.length + cache.kept + len(tokens))
        if (
            not isinstance(cache, GraphedCache) or len(tokens) > MAX_BUCKET or cache.kept
        ):  # kept rows have too many possible numbers for fixed shapes
            return super().score(tokens, parents, cache)
        rows = 1 << (len(tokens) - 1).bit_length()
        span = -(-(cache.length + rows) // SPAN_SLOTS) * SPAN_SLOTS
        if (rows, span) not in cache.steps:
            cache.steps[rows, span] = StaticStep(self, rows, span)
        logits = cache.steps[rows, span].run(tokens, parents, cache)
        cache.parents = parents
        return TorchLogits(logits)
