"""N-gram model of the next token, from counts in a request's prompt and in its workspace."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from drafting.arrays import IntArray
from drafting.sources.ngram_index import MAX_CHAIN_SLOTS, SUFFICIENT_OCCURRENCES, NgramArrays, find

ORDER_WEIGHTS = (0.01, 0.04, 0.15, 0.18, 0.12)
"""Weights of contexts of 1, 2, … 5 tokens. They need not sum to one, since shares are only compared. Source:
"Superposed Decoding: Multiple Generations from a Single Autoregressive Inference Pass", section 4, n from 2 to 6.
"""

MAX_OCCURRENCES = MAX_CHAIN_SLOTS + SUFFICIENT_OCCURRENCES
"""Maximum number of occurrences that a lookup in one index finds: too few of longer runs, and those of a chain."""


class NgramModel:
    """Shares of continuations in several indexes taken together."""

    def __init__(self, indexes: Sequence[NgramArrays]) -> None:
        self._indexes = indexes
        self._slots = np.zeros(MAX_OCCURRENCES, dtype=np.int32)
        self._lengths = np.zeros(MAX_OCCURRENCES, dtype=np.int32)

    def shares(self, context: Sequence[int], tokens: Sequence[int]) -> npt.NDArray[np.float64]:
        """Return how often each token followed the context's end: Σ over n of weight · share.  # [tokens]."""
        found = np.zeros(len(tokens))
        for order, weight in enumerate(ORDER_WEIGHTS, start=1):
            here = self._following(np.asarray(context[-order:], dtype=np.int32), order)
            if len(here):
                found += weight * (here[:, None] == np.asarray(tokens)[None, :]).mean(axis=0)
        return found

    def _following(self, run: IntArray, order: int) -> IntArray:
        """Return the tokens that followed the last `order` tokens.  # [occurrences].

        Each order is looked up by itself: a search for a long context ends with its first few occurrences.
        """
        following = [np.zeros(0, dtype=np.int32)]
        for index in self._indexes:
            count = find(index, run, self._slots, self._lengths)
            following.append(index.tokens[self._slots[:count][self._lengths[:count] >= order] + 1])
        return np.concatenate(following)
