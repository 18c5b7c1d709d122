"""Two models as one: either of them alone, or at each token the one that is more certain.

Source: "Faster Cascades via Speculative Decoding", section 4. Its deferral rule takes the small model's token unless
the larger one's best token is more probable than the small one's; a cost of deferral (its α) is 0 here.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from benchmarks.two_models.listening import ListeningModel
from completion.cancellation import NEVER, CancelToken
from completion.memory import Held
from completion.model.causal_model import CausalModel, KVCache, Logits, ScorePass
from completion.model.logits import DenseLogits
from drafting.arrays import FloatArray, IntArray


class Role(StrEnum):
    """Which of the models write."""

    SMALL = "small"
    LARGER = "larger"
    CASCADE = "cascade"


class PairCache:
    """The caches of both models. Prompts are in both, what is written only in those of the models that write it.

    Attributes:
        small: Cache of the small model.
        larger: Cache of the larger model.
        active: Those that are written to.
    """

    def __init__(self, small: KVCache, larger: KVCache) -> None:
        self.small, self.larger = small, larger
        self.active = [small, larger]
        self.capacity = min(small.capacity, larger.capacity)
        self._note()

    def _note(self) -> None:
        self.length, self.kept = self.active[-1].length, self.active[-1].kept

    def activate(self, role: Role) -> None:
        """Write to the caches of a role."""
        roles = {Role.SMALL: [self.small], Role.LARGER: [self.larger], Role.CASCADE: [self.small, self.larger]}
        self.active = roles[role]
        self._note()

    @property
    def size_bytes(self) -> int:
        """See `KVCache`."""
        return self.small.size_bytes + self.larger.size_bytes

    def held(self) -> Held:
        """See `KVCache`."""
        return self.small.held() + self.larger.held()

    def reserve(self, needed: int) -> None:
        """See `KVCache`."""
        self.small.reserve(needed)
        self.larger.reserve(needed)

    def shrink(self) -> None:
        """See `KVCache`."""
        self.small.shrink()
        self.larger.shrink()

    def compress(self) -> bool:
        """Round nothing; see `KVCache`."""
        self.shrink()
        return False

    def truncate(self, length: int) -> None:
        """See `KVCache`."""
        for cache in (self.small, self.larger):
            cache.truncate(min(length, cache.length))
        self._note()

    def commit(self, rows: Sequence[int]) -> None:
        """See `KVCache`."""
        for cache in self.active:
            cache.commit(rows)
        self._note()

    def keep(self, rows: Sequence[int]) -> None:
        """See `KVCache`."""
        for cache in self.active:
            cache.keep(rows)
        self._note()

    def reopen(self, length: int) -> None:
        """See `KVCache`."""
        for cache in self.active:
            cache.reopen(length)
        self._note()

    def rearrange(self, sources: IntArray) -> None:
        """See `KVCache`."""
        self.small.rearrange(sources)
        self.larger.rearrange(sources)
        self._note()


class PairModel:
    """A `CausalModel` of two models with one vocabulary.

    Attributes:
        larger: The larger model, which can judge texts.
        role: Which of them write.
        prompt_tokens: Number of tokens of prompts that they have computed.
        passes: Model and rows of each step.
    """

    joint_requests = 1

    def __init__(self, small: CausalModel, larger: CausalModel) -> None:
        if small.shape.vocabulary_size != larger.shape.vocabulary_size:
            raise SystemExit("The two models have different vocabularies. Choose two of one family.")
        self._small, self.larger, self.shape = small, ListeningModel(larger), larger.shape
        self.role = Role.LARGER
        self.prompt_tokens = 0
        self.passes: list[tuple[Role, int]] = []

    def held_weights(self) -> Held:
        """See `CausalModel`."""
        return self._small.held_weights() + self.larger.held_weights()

    def new_cache(self, capacity: int) -> PairCache:
        """See `CausalModel`."""
        return PairCache(self._small.new_cache(capacity), self.larger.new_cache(capacity))

    def prefill(
        self,
        tokens: IntArray,
        slots: IntArray,
        cache: KVCache,
        logits_rows: Sequence[int] = (),
        cancel: CancelToken = NEVER,
    ) -> Logits:
        """Compute tokens with both models; return the larger one's logits. See `CausalModel`."""
        pair = _own(cache)
        self.prompt_tokens += len(tokens)
        self._small.prefill(tokens, slots, pair.small, (), cancel)
        logits = self.larger.prefill(tokens, slots, pair.larger, logits_rows, cancel)
        pair.activate(self.role)
        return logits

    def score(
        self, tokens: IntArray, parents: IntArray, cache: KVCache, cancel: CancelToken = NEVER, skipped: int = 0
    ) -> Logits:
        """See `CausalModel`."""
        pair = _own(cache)
        pair.activate(self.role)
        roles = (Role.SMALL, Role.LARGER) if self.role is Role.CASCADE else (self.role,)
        self.passes += [(role, len(tokens)) for role in roles]
        if self.role is Role.SMALL:
            return self._small.score(tokens, parents, pair.small, cancel, skipped)
        larger = self.larger.score(tokens, parents, pair.larger, cancel, skipped)
        if self.role is Role.LARGER:
            return larger
        return more_certain(
            self._small.score(tokens, parents, pair.small, cancel, skipped), larger, len(tokens) - skipped
        )

    def score_together(self, passes: Sequence[ScorePass]) -> Sequence[Logits]:
        """See `CausalModel`."""
        return [self.score(each.tokens, each.parents, each.cache, skipped=each.skipped) for each in passes]

    def superpose(
        self, tokens: IntArray, weights: FloatArray, parents: IntArray, cache: KVCache, cancel: CancelToken = NEVER
    ) -> Logits:
        """Compute rows with the larger model; see `CausalModel`."""
        return self.larger.superpose(tokens, weights, parents, _own(cache).larger, cancel)


def _own(cache: KVCache) -> PairCache:
    assert isinstance(cache, PairCache)
    return cache


def more_certain(small: Logits, larger: Logits, rows: int) -> Logits:
    """Return each row of the model whose best token is more probable there, the small one's if they are alike."""
    chosen = []
    for row in range(rows):
        best = [float(each.top(1)[1][row, 0]) - each.log_sum(row) for each in (small, larger)]
        chosen.append((larger if best[1] > best[0] else small).row(row))
    return DenseLogits(np.stack(chosen))
