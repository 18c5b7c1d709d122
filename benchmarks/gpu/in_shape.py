"""A model that answers as a real one does, and takes the time of a larger one with random weights."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from completion.cancellation import NEVER, CancelToken
from completion.model.causal_model import CausalModel, KVCache, Logits
from drafting.arrays import FloatArray, IntArray


class BothCaches:
    """The same slots of both models; see `KVCache`."""

    def __init__(self, real: KVCache, large: KVCache) -> None:
        self.real, self.large = real, large

    @property
    def capacity(self) -> int:
        """See `KVCache`."""
        return min(self.real.capacity, self.large.capacity)

    @property
    def length(self) -> int:
        """See `KVCache`."""
        return self.real.length

    @property
    def kept(self) -> int:
        """See `KVCache`."""
        return self.real.kept

    @property
    def size_bytes(self) -> int:
        """See `KVCache`."""
        return self.large.size_bytes

    def reserve(self, needed: int) -> None:
        """See `KVCache`."""
        self.real.reserve(needed)
        self.large.reserve(needed)

    def truncate(self, length: int) -> None:
        """See `KVCache`."""
        self.real.truncate(length)
        self.large.truncate(length)

    def commit(self, rows: Sequence[int]) -> None:
        """See `KVCache`."""
        self.real.commit(rows)
        self.large.commit(rows)

    def keep(self, rows: Sequence[int]) -> None:
        """See `KVCache`."""
        self.real.keep(rows)
        self.large.keep(rows)

    def reopen(self, length: int) -> None:
        """See `KVCache`."""
        self.real.reopen(length)
        self.large.reopen(length)

    def rearrange(self, sources: IntArray) -> None:
        """See `KVCache`."""
        self.real.rearrange(sources)
        self.large.rearrange(sources)


class InShape:
    """Calls both models with the same rows, and returns the real one's logits; see `CausalModel`.

    So the steps and their sizes are those of real text. The vocabulary must be the same.

    Args:
        real: The model whose logits count.
        large: The model whose time counts.
        wait: Waits until the device has computed.
    """

    joint_requests = 1  # so nothing calls `score_together`

    def __init__(self, real: CausalModel, large: CausalModel, wait: Callable[[], object]) -> None:
        self.shape = real.shape
        self.held_weights, self.score_together = real.held_weights, real.score_together
        self._real, self._large, self._wait = real, large, wait
        self._unpaid_s = 0.0

    def clock(self) -> float:
        """Return the time in seconds, without the time of the real model."""
        return time.perf_counter() - self._unpaid_s

    def new_cache(self, capacity: int) -> BothCaches:
        """See `CausalModel`."""
        return BothCaches(self._real.new_cache(capacity), self._large.new_cache(capacity))

    def prefill(
        self,
        tokens: IntArray,
        slots: IntArray,
        cache: KVCache,
        logits_rows: Sequence[int] = (),
        cancel: CancelToken = NEVER,
    ) -> Logits:
        """See `CausalModel`."""
        real, large = _both(cache)
        self._large.prefill(tokens, slots, large, logits_rows, cancel)
        return self._unpaid(lambda: self._real.prefill(tokens, slots, real, logits_rows, cancel))

    def score(
        self, tokens: IntArray, parents: IntArray, cache: KVCache, cancel: CancelToken = NEVER, skipped: int = 0
    ) -> Logits:
        """See `CausalModel`."""
        real, large = _both(cache)
        self._large.score(tokens, parents, large, cancel, skipped)
        return self._unpaid(lambda: self._real.score(tokens, parents, real, cancel, skipped))

    def superpose(
        self, tokens: IntArray, weights: FloatArray, parents: IntArray, cache: KVCache, cancel: CancelToken = NEVER
    ) -> Logits:
        """See `CausalModel`."""
        real, large = _both(cache)
        self._large.superpose(tokens, weights, parents, large, cancel)
        return self._unpaid(lambda: self._real.superpose(tokens, weights, parents, real, cancel))

    def _unpaid(self, compute: Callable[[], Logits]) -> Logits:
        """Wait for the large model, then compute the logits of the real one, for which the clock stands still."""
        self._wait()
        started = time.perf_counter()
        logits = compute()
        self._wait()
        self._unpaid_s += time.perf_counter() - started
        return logits


def _both(cache: KVCache) -> tuple[KVCache, KVCache]:
    if not isinstance(cache, BothCaches):
        raise TypeError(f"A cache of type {type(cache).__name__} belongs to another model.")
    return cache.real, cache.large
