"""The int8 path on a CPU: the decoder's forward pass as one compiled call that several threads share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from threading import Lock

import numpy as np

from completion.cancellation import NEVER, CancelToken
from completion.errors import ModelError
from completion.memory import Held, large_memory
from completion.model.causal_model import KVCache, Logits, ScorePass
from completion.model.int8.cache import Int8Cache
from completion.model.int8.kernel_arguments import (
    MAX_ROWS,
    LongArray,
    address_table,
    new_buffers,
    sizes_of,
    strip_tables,
    widest_output,
)
from completion.model.int8.kernels.sizes import CHANNELS, MAX_TILE_QUERIES, SCRATCH_FLOATS
from completion.model.int8.kernels.views import Buffers, Outputs, RowsView, Sequences, Sizes
from completion.model.int8.packed_weights import PackedWeights
from completion.model.int8.rows import joined_rows, prompt_rows, sequences_of, tree_rows, wanted_first
from completion.model.int8.worker_threads import WorkerThreads
from completion.model.logits import DenseLogits, RowSlice
from completion.model.rotary import RotaryTables
from completion.model.weights import bfloat16_floats
from drafting.arrays import FloatArray, IntArray, own_zeros
from drafting.compiled import kernel_in

_ALL_DONE = 1 << 40
"""Count of claimed and finished items that is beyond any stage's, and far from the largest int64."""
run_layers = kernel_in("completion.model.int8.kernels.forward_pass", "run_layers")
"""See `forward_pass`."""


class QuantizedTransformer:
    """Scores rows of tokens on top of a cached past, with int8 activations and a bfloat16 cache.

    Attributes:
        step_bytes: Bytes of weights that a step reads.
    """

    joint_requests = 8  # with 16, sixteen typists got as many answers, and later

    def __init__(self, weights: PackedWeights, threads: int) -> None:
        architecture = weights.architecture
        self.architecture, self.shape, self.form = architecture, architecture.shape, weights.form
        self._weights, self._threads = weights, WorkerThreads(threads)
        self.step_bytes = sum(each.nbytes for each in weights.sections.values())
        self._embeddings = weights.embeddings
        self._strips = strip_tables(weights)
        self._sizes = sizes_of(architecture, in_lines=weights.form == "q4")
        self._ones = np.ones(widest_output(self._sizes), np.float32)
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
            ModelError: The weights' file was changed, or there is too little memory. The mapped ones are used on.
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
            here = wanted[(wanted >= start) & (wanted < start + MAX_ROWS)] - start
            rows = prompt_rows(slots[start : start + MAX_ROWS], here)
            found.append(self._run(self._embedded(tokens[start : start + MAX_ROWS]), rows, [cache], cancel))
        cache.settle(max(cache.length, int(slots[-1]) + 1))
        return DenseLogits.joined(found, np.argsort(np.argsort(wanted // MAX_ROWS, kind="stable")))

    def score(
        self, tokens: IntArray, parents: IntArray, cache: KVCache, cancel: CancelToken = NEVER, skipped: int = 0
    ) -> Logits:
        """Compute a draft tree on top of the past; see `CausalModel.score`."""
        return self._score([ScorePass(tokens, parents, cache, skipped)], self._embedded(tokens), cancel)[0]

    def score_together(self, passes: Sequence[ScorePass]) -> Sequence[Logits]:
        """Compute several trees at once; see `CausalModel.score_together`."""
        found, rest = list[Logits](), list(passes)
        while rest:
            rows = np.cumsum([len(each.tokens) for each in rest])
            count = max(1, int(np.searchsorted(rows, MAX_ROWS, "right")))
            group, rest = rest[:count], rest[count:]
            found += self._score(group, self._embedded(np.concatenate([each.tokens for each in group])), NEVER)
        return found

    def layer_by_layer(self, tokens: IntArray) -> Iterator[tuple[FloatArray, FloatArray, Buffers]]:
        """Compute at most MAX_ROWS tokens; after each layer, yield the rows before and after it, and the buffers.

        The buffers have what the layer's matrices multiplied, until the next layer is computed.
        """
        every = np.arange(len(tokens), dtype=np.int32)
        rows = prompt_rows(every, every)
        cache = self.new_cache(len(tokens))
        cache.reserve(len(tokens))
        outputs = Outputs(np.empty((0, 0), np.float32), np.empty((0, 0), np.float32))
        sizes, x = self._sizes._replace(layers=1), self._embedded(tokens)
        for layer in range(self._sizes.layers):
            with self._lock:
                sequences = sequences_of([cache])
                angles, windows = sequences.first_angles[layer:], sequences.windows[layer:]
                sequences = sequences._replace(first_angles=angles, windows=windows)
                buffers, table = self._with_scratch(int(sequences.slots.max())), self._table[layer:]
                buffers.x[: len(x)] = x
                self._run_layers(sizes, table, rows, sequences, buffers, outputs, NEVER.address)
                before, x = x, buffers.x[: len(x)].copy()
            yield before, x, buffers

    def superpose(
        self, tokens: IntArray, weights: FloatArray, parents: IntArray, cache: KVCache, cancel: CancelToken = NEVER
    ) -> Logits:
        """Compute rows of weighted sums of embeddings; see `CausalModel.superpose`."""
        embeddings = self._embedded(tokens)  # [rows, tokens, hidden]
        inputs = (weights.astype(np.float32)[:, :, None] * embeddings).sum(axis=1)
        return self._score([ScorePass(tokens, parents, cache)], inputs, cancel)[0]

    def _score(self, passes: Sequence[ScorePass], inputs: FloatArray, cancel: CancelToken) -> list[RowSlice]:
        """Compute trees, whose inputs follow each other; return the logits of each.  inputs: # [rows, hidden]."""
        if len(inputs) > MAX_ROWS:
            raise ModelError(f"A draft tree has at most {MAX_ROWS} nodes; this one has {len(inputs)}.")
        caches, nodes, rows = list[Int8Cache](), list[IntArray](), list[RowsView]()
        for each in passes:
            cache = Int8Cache.own(each.cache, each.cache.length + each.cache.kept + len(each.parents))
            caches.append(cache)
            nodes.append(cache.with_kept(each.parents))
            rows.append(tree_rows(nodes[-1], cache.length, cache.kept, each.skipped))
        logits = self._run(inputs, joined_rows(rows), caches, cancel)
        for cache, parents in zip(caches, nodes, strict=True):
            cache.parents = parents
        ends = np.cumsum([0, *(len(each.wanted) for each in rows)]).tolist()
        return [RowSlice(logits, first, end - first) for first, end in pairwise(ends)]

    def _embedded(self, tokens: IntArray) -> FloatArray:
        """Return the embeddings of tokens.  # [...] → # [..., hidden]."""
        embeddings, scale = bfloat16_floats(self._embeddings[tokens]), self.architecture.embedding_scale
        return embeddings if scale == 1.0 else embeddings * np.float32(scale)

    def _run(self, inputs: FloatArray, rows: RowsView, caches: Sequence[Int8Cache], cancel: CancelToken) -> DenseLogits:
        """Run one pass over at most MAX_ROWS rows.  inputs: # [rows, hidden].

        Raises:
            CancelledError: Before the next layer after `cancel`.
        """
        vocabulary = self._sizes.vocabulary
        if len(rows.wanted) < len(inputs):
            rows, order = wanted_first(rows)
            inputs = inputs[order]
        outputs = Outputs(
            np.empty((len(rows.wanted), vocabulary), np.float32),
            np.empty((len(rows.wanted), vocabulary // CHANNELS), np.float32),
        )
        with self._lock:
            sequences = sequences_of(caches)
            buffers = self._with_scratch(int(sequences.slots.max()))
            buffers.x[: len(inputs)] = inputs
            self._run_layers(self._sizes, self._table, rows, sequences, buffers, outputs, cancel.address)
        cancel.raise_if_cancelled()
        return DenseLogits(outputs.logits, self.shape.vocabulary_size, len(inputs), outputs.largest)

    def _run_layers(
        self,
        sizes: Sizes,
        table: LongArray,
        rows: RowsView,
        sequences: Sequences,
        buffers: Buffers,
        outputs: Outputs,
        stopped: int,
    ) -> None:
        """Call `run_layers` on all threads. If one of them raises, the others find all items claimed and finished."""

        def run(thread: int) -> None:
            try:
                run_layers(thread, sizes, table, rows, sequences, buffers, outputs, stopped)
            except BaseException:
                buffers.counters.fill(_ALL_DONE)
                raise

        buffers.counters.fill(0)
        self._threads.run(run)

    def _with_scratch(self, slots: int) -> Buffers:
        """Return the buffers, with room for scores of every slot of a cache."""
        needed = SCRATCH_FLOATS + MAX_TILE_QUERIES * slots
        if self._buffers.scratch.shape[1] < needed:
            self._buffers = self._buffers._replace(scratch=own_zeros((self._threads.count, needed), np.float32))
        return self._buffers
