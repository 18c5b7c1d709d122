"""N-gram model of the next token, from counts in a request's prompt and in its workspace."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from drafting.arrays import IntArray
from drafting.sources.ngram_index import MAX_MATCH, NgramArrays, find

ORDER_WEIGHTS = (0.01, 0.04, 0.15, 0.18, 0.12)
"""Weights of contexts of 1, 2, … 5 tokens. They need not sum to one, since shares are only compared. Source:
"Superposed Decoding: Multiple Generations from a Single Autoregressive Inference Pass", section 4, n from 2 to 6.
"""

MAX_OCCURRENCES = 256
"""Maximum number of a context's occurrences that are counted in one index, the longest matches first."""


class NgramModel:
    """Shares of continuations in several indexes taken together."""

    def __init__(self, indexes: Sequence[NgramArrays]) -> None:
        self._indexes = indexes
        self._slots = np.zeros(MAX_OCCURRENCES, dtype=np.int32)
        self._lengths = np.zeros(MAX_OCCURRENCES, dtype=np.int32)

    def shares(self, context: Sequence[int], tokens: Sequence[int]) -> npt.NDArray[np.float64]:
        """Return how often each token followed the context's end: Σ over n of weight · share.  # [tokens].

        Args:
            context: Tokens up to the position of the next one.
            tokens: The tokens to look for.
        """
        lengths, following = self._occurrences(context)
        found = np.zeros(len(tokens))
        for order, weight in enumerate(ORDER_WEIGHTS, start=1):
            here = following[lengths >= order]
            if len(here):
                found += weight * (here[:, None] == np.asarray(tokens)[None, :]).mean(axis=0)
        return found

    def _occurrences(self, context: Sequence[int]) -> tuple[IntArray, IntArray]:
        """Return the occurrences of the context's end: match length and following token.  # [occurrences] twice."""
        tail = np.asarray(context[-MAX_MATCH:], dtype=np.int32)
        lengths, following = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.int32)]
        for index in self._indexes:
            count = find(index, tail, self._slots, self._lengths)
            lengths.append(self._lengths[:count].copy())
            following.append(index.tokens[self._slots[:count] + 1])
        return np.concatenate(lengths), np.concatenate(following)
