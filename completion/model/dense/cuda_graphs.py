"""Draft trees scored in fixed shapes, so that a GPU replays one captured graph a step instead of launching kernels.

Rows are padded to 1, 2, 4, .. 64, kept rows to a few numbers, and the past to whole spans of slots. Everything that
differs between two steps of one shape is in one small tensor. Without a GPU the same step runs uncaptured.
"""

from __future__ import annotations

import numpy as np
import torch

from completion.cancellation import NEVER, CancelToken
from completion.model.architecture import Architecture
from completion.model.causal_model import KVCache
from completion.model.dense.dense_transformer import DenseTransformer, Rows, masked
from completion.model.dense.kv_cache import TorchCache
from completion.model.dense.torch_logits import TorchLogits
from completion.model.dense.weights import Weights
from completion.model.draft_rows import ancestors_of, depths_of
from drafting.arrays import IntArray

MAX_BUCKET = 64
"""Maximum number of rows of a padded tree; a larger tree is scored without a graph."""
MAX_KEPT = (0, 256, 1024)
"""Numbers to which the kept rows of branches are rounded up; after more rows a tree is scored without a graph."""
SPAN_SLOTS = 1024
"""Span to which a step's past is rounded up, in slots. Smaller spans need more graphs, larger ones mask more slots."""


class StaticStep:
    """Step of one shape on one cache: captured at its first run on a GPU, replayed from then on.

    The captured graph has the addresses of the cache's tensors, so a cache drops its steps when it reallocates them.
    """

    def __init__(self, model: GraphedTransformer, rows: int, kept: int, span: int) -> None:
        self._model, self._rows, self._columns, self._span = model, rows, kept + rows, span
        device = torch.device(model.device)
        size = 8 * (2 * rows + 2) + rows * self._columns
        self._host = torch.zeros(size, dtype=torch.uint8, pin_memory=device.type == "cuda")
        self._inputs = self._host.to(device, copy=True)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._logits = torch.empty(0)

    def run(self, tokens: IntArray, parents: IntArray, cache: TorchCache) -> torch.Tensor:
        """Return the logits of a tree on top of the past and kept rows of the cache, always the same one.

        Args:
            tokens: Token ids of the new nodes.  # [rows]
            parents: Parents of kept rows and new nodes.  # [kept + rows]
            cache: Scratch slots are written.

        Returns:
            Logits of the new nodes.  # [rows, vocabulary]
        """
        self._fill(tokens, parents, cache)
        self._inputs.copy_(self._host, non_blocking=True)
        if self._inputs.device.type != "cuda":
            return self._compute(cache)[: len(tokens)]
        if self._graph is None:
            self._capture(cache)
        self._graph.replay()  # type: ignore[union-attr]
        return self._logits[: len(tokens)].clone()

    def _parts(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return tokens, depths, the length of the past and the number of kept rows; which rows of the tree each sees.

        # int64 [2 · rows + 2], uint8 [rows, kept + rows]
        """
        numbers = 8 * (2 * self._rows + 2)
        return inputs[:numbers].view(torch.int64), inputs[numbers:].view(self._rows, self._columns)

    def _fill(self, tokens: IntArray, parents: IntArray, cache: TorchCache) -> None:
        """Write a tree; padding rows see only themselves."""
        count, rows, kept, depths = len(tokens), self._rows, cache.kept, depths_of(parents)
        numbers, lineage = (part.numpy() for part in self._parts(self._host))
        numbers[:], lineage[:] = 0, 0
        numbers[:count], numbers[rows : rows + count] = tokens, depths[kept:]
        numbers[2 * rows :] = cache.length, kept
        lineage[np.arange(rows), kept + np.arange(rows)] = 1
        row, depth = np.nonzero((ancestors := ancestors_of(parents, depths)[kept:]) >= 0)
        lineage[row, ancestors[row, depth]] = 1

    def _compute(self, cache: TorchCache) -> torch.Tensor:
        numbers, lineage = self._parts(self._inputs)
        tokens, depths, length, kept = numbers.split((self._rows, self._rows, 1, 1))
        offsets = torch.arange(self._span, device=numbers.device) - length  # slots relative to the end of the past
        in_tree = (offsets >= 0) & (offsets < self._columns)
        visible = (offsets < 0) | (in_tree & (lineage[:, offsets.clamp(0, self._columns - 1)] > 0))  # [rows, span]
        masks = masked(visible, self._model.architecture)
        slots = length + kept + torch.arange(self._rows, device=numbers.device)
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
        with torch.cuda.graph(self._graph, pool=self._model.pool):
            self._logits = self._compute(cache)


class GraphedCache(TorchCache):
    """Keys and values in whole spans of slots, with room for a padded tree at the end, and the captured steps."""

    __slots__ = ("steps",)

    def resize(self, slots: int) -> None:
        """Allocate slots, and drop the steps captured on the old tensors."""
        self.steps: dict[tuple[int, int, int], StaticStep] = {}
        super().resize(-(-(slots + MAX_BUCKET) // SPAN_SLOTS) * SPAN_SLOTS)


class GraphedTransformer(DenseTransformer):
    """The torch decoder, with draft trees in fixed shapes.

    Attributes:
        pool: Memory that all graphs share: they run one after another, and their results are copied at once.
    """

    def __init__(self, architecture: Architecture, weights: Weights, *, int8_cache: bool = False) -> None:
        super().__init__(architecture, weights, int8_cache=int8_cache)
        self.pool = torch.cuda.graph_pool_handle() if self.device.startswith("cuda") else None

    def new_cache(self, capacity: int) -> GraphedCache:
        """Return an empty cache of at most `capacity` slots; see `CausalModel.new_cache`."""
        return GraphedCache(self.shape, capacity, self.store())

    @torch.inference_mode()
    def score(self, tokens: IntArray, parents: IntArray, cache: KVCache, cancel: CancelToken = NEVER) -> TorchLogits:
        """Compute a draft tree on top of the past and of kept rows; see `CausalModel.score`."""
        cache = TorchCache.own(cache, cache.length + cache.kept + len(tokens))
        if not isinstance(cache, GraphedCache) or len(tokens) > MAX_BUCKET or cache.kept > MAX_KEPT[-1]:
            return super().score(tokens, parents, cache, cancel)
        rows = 1 << (len(tokens) - 1).bit_length()
        kept = next(kept for kept in MAX_KEPT if cache.kept <= kept)
        span = -(-(cache.length + cache.kept + rows) // SPAN_SLOTS) * SPAN_SLOTS
        if (rows, kept, span) not in cache.steps:
            cache.steps[rows, kept, span] = StaticStep(self, rows, kept, span)
        parents = cache.with_kept(parents)
        logits = cache.steps[rows, kept, span].run(tokens, parents, cache)
        cache.parents = parents
        return TorchLogits(logits)
