"""The int8 path on a CPU: the decoder's forward pass as one compiled call that several threads share."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import numpy as np

from completion.cancellation import NEVER, CancelToken
from completion.errors import ModelError
from completion.memory import Held, large_memory
from completion.model.causal_model import KVCache, Logits
from completion.model.draft_rows import NO_ROWS, ancestors_of, depths_of
from completion.model.int8.cache import Int8Cache
from completion.model.int8.kernel_arguments import (
    MAX_ROWS,
    address_table,
    new_buffers,
    sizes_of,
    strip_tables,
)
from completion.model.int8.kernels.sizes import CHANNELS, MAX_TILE_QUERIES, SCRATCH_FLOATS
from completion.model.int8.kernels.views import Buffers, Outputs, RowsView
from completion.model.int8.packed_weights import PackedWeights
from completion.model.logits import PanelLogits
from completion.model.rotary import RotaryTables
from completion.model.worker_threads import WorkerThreads
from drafting.arrays import FloatArray, IntArray, own_zeros
from drafting.compiled import kernel_in

run_layers = kernel_in("completion.model.int8.kernels.forward_pass", "run_layers")
"""See `forward_pass`."""


class QuantizedTransformer:
    """Scores rows of tokens on top of a cached past, with int8 activations and a bfloat16 cache.

    Attributes:
        form: Form of the weights.
        step_bytes: Bytes of weights that a step reads.
    """

    def __init__(self, weights: PackedWeights, threads: int) -> None:
        architecture = weights.architecture
        self.architecture, self.shape, self.form = architecture, architecture.shape, weights.form
        self._weights, self._threads = weights, WorkerThreads(threads)
        self.step_bytes = sum(each.nbytes for each in weights.sections.values())
        self._embeddings = weights.embeddings
        self._strips = strip_tables(weights)
        self._sizes = sizes_of(architecture, in_lines=weights.form == "q4")
        self._ones = np.ones(max(self._sizes.up, self._sizes.vocabulary), np.float32)
        self._table = address_table(weights, self._strips, self._ones)
        self._angles = RotaryTables(architecture)
        self._buffers = new_buffers(self._sizes, architecture, threads)
        self._lock = Lock()  # buffers serve one pass at a time
        self._room = Held()  # memory that mapped weights are being read into

    def new_cache(self, capacity: int) -> Int8Cache:
        """Return an empty cache of at most `capacity` slots; see `CausalModel.new_cache`."""
        architecture = self.architecture
        self._angles.reach(min(capacity, architecture.max_positions))
        return Int8Cache(architecture, capacity, self._angles.cosines, self._angles.sines, self._threads)

    def warm_up(self) -> None:
        """Score two rows and move slots, which compiles what is not in numba's cache and reads the weights once."""
        cache = self.new_cache(2)
        self.score(np.zeros(2, np.int32), np.full(2, -1, np.int32), cache).argmax()
        cache.commit([1])
        cache.rearrange(np.array([1, 0], np.int32))
        cache.compress()
        cache.reserve(2)

    def settle(self) -> None:
        """Take memory of its own for mapped weights; steps run meanwhile. May be called on any thread.

        Raises:
            ModelDamagedError: The weights' file was changed. The mapped ones are used on.
        """
        if self._weights.mapping is None:
            return
        room = large_memory(len(self._weights.mapping))
        self._room = Held.arrays([np.frombuffer(room, np.uint8)])
        try:
            weights = self._weights.in_memory(room)
            strips = strip_tables(weights)
            table = address_table(weights, strips, self._ones)
            with self._lock:
                self._weights, self._strips, self._table = weights, strips, table
        finally:
            self._room = Held()

    def rest(self) -> None:
        """Give back the buffers' memory, about 10 MB. The next passes take it again, as far as their rows need it."""
        with self._lock:
            self._buffers = new_buffers(self._sizes, self.architecture, self._threads.count)

    def held_weights(self) -> Held:
        """Return where the weights are; while they settle, in two parts."""
        return self._room + Held.arrays(self._weights.sections.values())

    def prefill(
        self,
        tokens: IntArray,
        slots: IntArray,
        cache: KVCache,
        logits_rows: Sequence[int] = (),
        cancel: CancelToken = NEVER,
    ) -> Logits:
        """Compute tokens into given slots; see `CausalModel.prefill`."""
        cache = Int8Cache.own(cache, int(slots[-1]) + 1)
        wanted, found = np.asarray(logits_rows, dtype=np.int32), []
        for start in range(0, len(tokens), MAX_ROWS):
            chunk = np.ascontiguousarray(slots[start : start + MAX_ROWS], dtype=np.int32)
            here = wanted[(wanted >= start) & (wanted < start + MAX_ROWS)] - start
            nothing = np.zeros(len(chunk) + 1, dtype=np.int32)
            rows = RowsView(chunk, chunk, chunk + np.int32(1), nothing, NO_ROWS, here.astype(np.int32))
            found.append(self._run(self._embedded(tokens[start : start + MAX_ROWS]), rows, cache, cancel))
        cache.settle(max(cache.length, int(slots[-1]) + 1))
        return PanelLogits.joined(found, np.argsort(np.argsort(wanted // MAX_ROWS, kind="stable")))

    def score(self, tokens: IntArray, parents: IntArray, cache: KVCache, cancel: CancelToken = NEVER) -> Logits:
        """Compute a draft tree on top of the past; see `CausalModel.score`."""
        return self._score(self._embedded(tokens), parents, cache, cancel)

    def superpose(
        self, tokens: IntArray, weights: FloatArray, parents: IntArray, cache: KVCache, cancel: CancelToken = NEVER
    ) -> Logits:
        """Compute rows of weighted sums of embeddings; see `CausalModel.superpose`."""
        embeddings = self._embedded(tokens)  # [rows, tokens, hidden]
        return self._score((weights.astype(np.float32)[:, :, None] * embeddings).sum(axis=1), parents, cache, cancel)

    def _score(self, inputs: FloatArray, parents: IntArray, cache: KVCache, cancel: CancelToken) -> PanelLogits:
        cache = Int8Cache.own(cache, cache.length + cache.kept + len(inputs))
        parents = cache.with_kept(parents)
        if len(inputs) > MAX_ROWS:
            raise ModelError(f"A draft tree has at most {MAX_ROWS} nodes; this one has {len(inputs)}.")
        logits = self._run(inputs, tree_rows(parents, cache.length, cache.kept), cache, cancel)
        cache.parents = parents
        return logits

    def _embedded(self, tokens: IntArray) -> FloatArray:
        """Return the embeddings of tokens.  # [...] → # [..., hidden]."""
        embeddings, scale = _widened(self._embeddings[tokens]), self.architecture.embedding_scale
        return embeddings if scale == 1.0 else embeddings * np.float32(scale)

    def _run(self, inputs: FloatArray, rows: RowsView, cache: Int8Cache, cancel: CancelToken) -> PanelLogits:
        """Run one pass over at most MAX_ROWS rows.  inputs: # [rows, hidden].

        Raises:
            CancelledError: Before the next layer after `cancel`.
        """
        vocabulary = self._sizes.vocabulary
        outputs = Outputs(
            np.empty((len(rows.wanted), vocabulary), np.float32),
            np.empty((len(rows.wanted), vocabulary // CHANNELS), np.float32),
        )
        with self._lock:
            buffers = self._with_scratch(cache.view.plain_keys.shape[2])
            buffers.x[: len(inputs)] = inputs
            buffers.counters.fill(0)
            sizes, table, view, stop = self._sizes, self._table, cache.view, cancel.address
            self._threads.run(lambda thread: run_layers(thread, sizes, table, rows, view, buffers, outputs, stop))
        cancel.raise_if_cancelled()
        return PanelLogits(outputs.logits, outputs.largest, self.shape.vocabulary_size)

    def _with_scratch(self, slots: int) -> Buffers:
        """Return the buffers, with room for scores of every slot of a cache."""
        needed = SCRATCH_FLOATS + MAX_TILE_QUERIES * slots
        if self._buffers.scratch.shape[1] < needed:
            self._buffers = self._buffers._replace(scratch=own_zeros((self._threads.count, needed), np.float32))
        return self._buffers


def tree_rows(parents: IntArray, length: int, first: int = 0) -> RowsView:
    """Return what nodes of a draft tree see: the past, a run of ancestors in the next slots, single other ancestors.

    Nodes before `first` are kept rows and are not computed.
    """
    depths = depths_of(parents)
    ancestors, depths, count = ancestors_of(parents, depths)[first:], depths[first:], len(parents) - first
    in_a_run = np.cumprod(ancestors == np.arange(ancestors.shape[1]), axis=1).sum(
        axis=1
    )  # ancestor of depth d is row d
    single = (ancestors >= 0) & (np.arange(ancestors.shape[1]) >= in_a_run[:, None])
    start = np.concatenate([[0], np.cumsum(single.sum(axis=1))]).astype(np.int32)
    return RowsView(
        slots=np.arange(length + first, length + first + count, dtype=np.int32),
        positions=(length + depths).astype(np.int32),
        contiguous=(length + in_a_run).astype(np.int32),
        singles_start=start,
        singles=(length + ancestors[single]).astype(np.int32),
        wanted=np.arange(count, dtype=np.int32),
    )


def _widened(bits: IntArray) -> FloatArray:
    """Convert bfloat16 bits to float32."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
