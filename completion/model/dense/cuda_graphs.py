"""Draft trees scored in fixed shapes, so that a GPU replays one captured graph a step instead of launching kernels.

Rows are padded to 1, 2, 4, .. 64, kept rows to a few numbers, and for torch's own operators the past to whole spans of
slots. Everything that differs between two steps of one shape is in one small tensor. Without a GPU the same step runs
uncaptured.
"""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import torch

from completion.cancellation import NEVER, CancelToken
from completion.model.architecture import Architecture
from completion.model.causal_model import KVCache, Logits, ModelShape
from completion.model.dense.attention import PLAIN, Kernels, Sight
from completion.model.dense.dense_transformer import DenseTransformer
from completion.model.dense.kv_cache import Store, TorchCache
from completion.model.dense.torch_logits import TorchLogits, best_tokens
from completion.model.dense.weights import Weights
from completion.model.draft_rows import NO_ROWS, tree_distances
from completion.model.logits import without_first
from drafting.arrays import IntArray

MAX_BUCKET = 64
"""Maximum number of rows of a padded tree; a larger tree is scored without a graph."""
MAX_KEPT = (0, 256, 1024)
"""Numbers to which the kept rows of branches are rounded up; after more rows a tree is scored without a graph."""
MAX_MOVES = 64
"""Maximum number of slots that a step copies before it scores; a commit of more copies them at once."""
MAX_STEPS = 32
"""Maximum number of captured steps of a model, the last used ones: of three documents or so. A driver keeps some
megabytes for each graph, which no bound of torch counts."""
SPAN_SLOTS = 1024
"""Span to which a step's past is rounded up, in slots. Smaller spans need more graphs, larger ones mask more slots."""


class StaticStep:
    """Step of one shape on one cache: captured at its first run on a GPU, replayed from then on.

    It is all that a greedy step does: it moves the rows that the last commit accepted, scores a tree and finds the best
    tokens, which it writes to the model's `results`. The captured graph has the addresses of the cache's tensors.
    """

    def __init__(self, model: GraphedTransformer, rows: int, kept: int, span: int) -> None:
        self._model, self._rows, self._columns, self._span = model, rows, kept + rows, span
        self._sizes = (rows, rows, 1, 1, 1, MAX_MOVES, MAX_MOVES)
        size = 8 * sum(self._sizes) + 2 * rows * self._columns
        self._host = torch.zeros(size, dtype=torch.uint8)
        self._inputs = self._host.to(model.device, copy=True)
        self._graph: torch.cuda.CUDAGraph | None = None

    def run(self, tokens: IntArray, parents: IntArray, cache: GraphedCache) -> TorchLogits:
        """Return the logits of a tree on top of the past and kept rows of the cache, always the same one.

        Args:
            tokens: Token ids of the new nodes.  # [rows]
            parents: Parents of kept rows and new nodes.  # [kept + rows]
            cache: Scratch slots are written.
        """
        on_gpu = self._inputs.device.type == "cuda"
        if on_gpu and self._graph is None:
            cache.move()  # a capture runs the step twice
        self._fill(tokens, parents, cache)
        if on_gpu:
            # The pinned copy is torch's, which does not use its memory again before the device has read it.
            self._inputs.copy_(self._host.pin_memory(), non_blocking=True)
            if self._graph is None:
                self._capture(cache)
            self._graph.replay()  # type: ignore[union-attr]
        else:
            self._inputs.copy_(self._host)
            self._compute(cache)
        logits, best = self._model.results
        return TorchLogits(logits[: len(tokens)].clone(), best[: len(tokens)].clone())

    def _parts(self, inputs: torch.Tensor) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
        """Return the numbers of a step, and the distances of its rows from the rows of the tree.

        The numbers are tokens, positions, the length of the past, the first row's slot, the slot after the last row,
        and from where to where slots move.

        # int64 in parts of `_sizes`, int16 [rows, kept + rows]
        """
        end = 8 * sum(self._sizes)
        return inputs[:end].view(torch.int64).split(self._sizes), inputs[end:].view(torch.int16).view(self._rows, -1)

    def _fill(self, tokens: IntArray, parents: IntArray, cache: GraphedCache) -> None:
        """Write a tree; padding rows see only themselves."""
        count, rows, kept, length = len(tokens), self._rows, cache.kept, cache.length
        numbers, distances = self._parts(self._host)
        ids, positions, start, first, end, sources, targets = (part.numpy() for part in numbers)
        ids[:], positions[:], start[:], first[:], end[:] = 0, length, length, length + kept, length + kept + rows
        depths, among = tree_distances(parents, kept)
        ids[:count], positions[:count] = tokens, length + depths
        padded = distances.numpy()
        padded[:] = 0
        padded[np.arange(rows), kept + np.arange(rows)] = 1
        padded[:count, : kept + count] = among
        moved_from, moved_to = cache.take_moves()
        sources[:], targets[:] = end - 1, end - 1  # the step's last slot, which is written afterwards
        sources[: len(moved_from)], targets[: len(moved_to)] = moved_from, moved_to

    def _compute(self, cache: GraphedCache) -> None:
        (tokens, positions, start, first, end, sources, targets), distances = self._parts(self._inputs)
        cache.store.copy(sources, targets)
        slots = first + torch.arange(self._rows, device=first.device)
        sight = Sight(slots, positions, start.expand(self._rows), start, end, distances, self._span)
        logits = self._model.logits(self._model.forward(self._model.embedded(tokens), sight, cache))
        for result, found in zip(self._model.results, (logits, best_tokens(logits)), strict=True):
            result[: self._rows].copy_(found)

    def _capture(self, cache: GraphedCache) -> None:
        """Record the step's kernels, after a run on another stream in which libraries initialise themselves."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self._compute(cache)
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, pool=self._model.pool):
            self._compute(cache)


class GraphedCache(TorchCache):
    """Keys and values in whole spans of slots, with room for a padded tree at the end."""

    __slots__ = ("_moves",)

    def __init__(self, shape: ModelShape, capacity: int, store: Store) -> None:
        self._moves = (NO_ROWS, NO_ROWS)
        super().__init__(shape, capacity, store)

    def copy_slots(self, sources: IntArray, targets: IntArray) -> None:
        """Leave the copy of a few slots to the next step; see `TreeCache`."""
        self.move()
        if len(sources) > MAX_MOVES:
            super().copy_slots(sources, targets)
        else:
            self._moves = (sources, targets)

    def take_moves(self) -> tuple[IntArray, IntArray]:
        """Return the slots that the next step copies, as `copy_slots` got them, and forget them."""
        moves, self._moves = self._moves, (NO_ROWS, NO_ROWS)
        return moves

    def move(self) -> None:
        """Copy now what was left to the next step, before other work reads or writes slots."""
        sources, targets = self.take_moves()
        if len(sources):
            super().copy_slots(sources, targets)

    def rearrange(self, sources: IntArray) -> None:
        """See `TorchCache`."""
        self.move()
        super().rearrange(sources)

    @property
    def allocated(self) -> int:
        """Number of slots of the tensors."""
        return self.store.tensors["keys"].shape[2]

    @property
    def place(self) -> tuple[int, ...]:
        """Where the tensors are, and their slots: what a captured graph has of the cache."""
        return (self.allocated, *(tensor.data_ptr() for tensor in self.store.tensors.values()))

    def resize(self, slots: int) -> None:
        """Allocate slots if there are not enough."""
        needed = -(-(slots + MAX_BUCKET) // SPAN_SLOTS) * SPAN_SLOTS
        if needed != self.allocated:
            super().resize(needed)


class GraphedTransformer(DenseTransformer):
    """The torch decoder, with draft trees in fixed shapes.

    Attributes:
        pool: Memory that all graphs share: they run one after another.
        results: Logits and best tokens of the last step, of which each caller takes a copy at once.
            # [MAX_BUCKET, vocabulary], [MAX_BUCKET, ...]
        steps: The last used steps, by their sizes and the place of their cache; the most recent one is the last.
    """

    def __init__(
        self, architecture: Architecture, weights: Weights, *, int8_cache: bool = False, kernels: Kernels = PLAIN
    ) -> None:
        super().__init__(architecture, weights, int8_cache=int8_cache, kernels=kernels)
        self.pool = torch.cuda.graph_pool_handle() if self.device.startswith("cuda") else None
        head, shape = weights.head, (MAX_BUCKET, self.shape.vocabulary_size)
        logits = torch.zeros(shape, dtype=head.dtype, device=self.device)
        self.results = logits, best_tokens(logits)
        self.steps: OrderedDict[tuple[int, ...], StaticStep] = OrderedDict()

    def new_cache(self, capacity: int) -> GraphedCache:
        """Return an empty cache of at most `capacity` slots; see `CausalModel.new_cache`."""
        return GraphedCache(self.shape, capacity, self.store())

    @torch.inference_mode()
    def score(
        self, tokens: IntArray, parents: IntArray, cache: KVCache, cancel: CancelToken = NEVER, skipped: int = 0
    ) -> Logits:
        """Compute a draft tree on top of the past and of kept rows; see `CausalModel.score`."""
        cache = GraphedCache.own(cache, cache.length + cache.kept + len(tokens))
        if len(tokens) > MAX_BUCKET or cache.kept > MAX_KEPT[-1]:
            return super().score(tokens, parents, cache, cancel, skipped)
        rows = 1 << (len(tokens) - 1).bit_length()
        kept = next(kept for kept in MAX_KEPT if cache.kept <= kept)
        needed = cache.length + cache.kept + rows
        span = -(-needed // SPAN_SLOTS) * SPAN_SLOTS if self.kernels.masks_span else cache.allocated
        key = (rows, kept, span, *cache.place)
        step = self.steps.pop(key, None) or StaticStep(self, rows, kept, span)
        self.steps[key] = step
        if len(self.steps) > MAX_STEPS:
            self.steps.popitem(last=False)
        parents = cache.with_kept(parents)
        logits = step.run(tokens, parents, cache)
        cache.parents = parents
        return without_first(logits, skipped, len(tokens))

    def own(self, cache: KVCache, needed: int) -> GraphedCache:
        """Return a cache of this model, with what was left to the next step copied."""
        owned = GraphedCache.own(cache, needed)
        owned.move()
        return owned
