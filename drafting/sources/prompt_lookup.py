"""Lookup of the context's end in the request's own tokens: guesses what followed it before.

Source: prompt lookup decoding, with the occurrences ranked and counted as in "SuffixDecoding: Extreme Speculative
Decoding for Emerging AI Applications", so that a tree can branch where they disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple

import numpy as np

from drafting.arrays import IntArray
from drafting.compiled import compiled, compiled_within
from drafting.sources.ngram_index import GAP, MAX_MATCH, ORDERS, NgramArrays, empty_arrays, find, link

MAX_OCCURRENCES = 24
"""Maximum number of occurrences that vote on a continuation."""

RANKS = 4
"""Number of different continuations that a lookup keeps."""

SPARE_SLOTS = 256
"""Number of further tokens that fit before the memory of an index grows."""

LENGTH_CLASSES = 9
"""Number of classes of match lengths; see `length_class`."""
AGREEMENTS = 4
"""Classes of agreement: one vote only, all votes, at least half of them, fewer."""
CLASSES = LENGTH_CLASSES * AGREEMENTS * (RANKS + 1) + 1
"""Kinds of evidence for or against a token: match length, agreement, rank or absence; and "no match at all"."""

NO_MATCH = CLASSES - 1
"""Kind of evidence of a lookup that found no occurrence."""


class Continuations(NamedTuple):
    """Scratch memory and result of a lookup.

    Attributes:
        slots: Where the context's end occurs.  # [MAX_OCCURRENCES]
        lengths: Number of tokens that match there.  # [MAX_OCCURRENCES]
        tokens: The continuations, best first.  # [RANKS]
        longest: Longest match of each continuation.  # [RANKS]
        votes: Occurrences of each continuation.  # [RANKS]
    """

    slots: IntArray
    lengths: IntArray
    tokens: IntArray
    longest: IntArray
    votes: IntArray


def continuations_scratch() -> Continuations:
    """Return memory for `rank_continuations`."""
    return Continuations(
        *(np.zeros(n, dtype=np.int32) for n in (MAX_OCCURRENCES, MAX_OCCURRENCES, RANKS, RANKS, RANKS))
    )


class PromptLookup:
    """Index of the tokens of one request, in order; each new token is added once."""

    def __init__(self, tokens: IntArray) -> None:
        """Index a prompt, which has GAP where no match may cross."""
        self.arrays = empty_arrays(len(tokens) + SPARE_SLOTS, len(ORDERS))
        self._count = 0
        self.observe(tokens)

    def copy(self) -> PromptLookup:
        """Return an independent index with the same tokens."""
        other = copy(self)
        other.arrays = NgramArrays(*(array.copy() for array in self.arrays))
        return other

    def observe(self, tokens: Sequence[int] | IntArray) -> None:
        """Add tokens after the last ones."""
        stop = self._count + len(tokens)
        if stop > len(self.arrays.tokens):
            self._grow(2 * stop)
        self.arrays.tokens[self._count : stop] = tokens
        link(self.arrays, self._count, stop)
        self._count = stop

    def _grow(self, slots: int) -> None:
        old = self.arrays.tokens[: self._count]
        self.arrays = empty_arrays(slots, len(ORDERS))
        self.arrays.tokens[: self._count] = old
        link(self.arrays, 0, self._count)


@compiled_within
def length_class(length: int) -> int:
    """Return the class of a match length: 1, 2, 3, 4, 5–6, 7–9, 10–14, 15–23, longer."""
    if length <= 4:
        return max(length, 1) - 1
    if length <= 6:
        return 4
    if length <= 9:
        return 5
    if length <= 14:
        return 6
    return 7 if length < MAX_MATCH else 8


@compiled
def rank_continuations(index: NgramArrays, tail: IntArray, skipped: int, result: Continuations) -> int:
    """Find what followed the end of `tail` before: longest match first, then most frequent, then most recent.

    Args:
        index: Where to search.
        tail: The last tokens of the context.  # [MAX_MATCH]
        skipped: Number of last tokens of `tail` that are not matched. With 1, the lookup finds what followed a
            different token after the same ones, as after another name in the same phrase.
        result: Receives the continuations; unused ranks hold GAP.

    Returns:
        The number of occurrences that vote; with 0 the result has no meaning.
    """
    found = find(index, tail[: len(tail) - skipped], result.slots, result.lengths)
    result.tokens[:] = GAP
    ranks = votes = 0
    for i in range(found):
        slot = result.slots[i] + 1 + skipped
        token = index.tokens[slot] if slot < len(index.tokens) else GAP
        if token < 0 or (skipped > 0 and index.tokens[slot - 1] == tail[-1]):
            continue
        votes += 1
        rank = 0
        while rank < ranks and result.tokens[rank] != token:
            rank += 1
        if rank < ranks:
            result.votes[rank] += 1
            result.longest[rank] = max(result.longest[rank], result.lengths[i])
        elif ranks < RANKS:
            result.tokens[rank], result.longest[rank], result.votes[rank] = token, result.lengths[i], 1
            ranks += 1
    _sort(result, ranks)
    return votes


@compiled_within
def _sort(result: Continuations, ranks: int) -> None:
    """Sort by length class, then votes, newest first among equals (insertion sort)."""
    for i in range(1, ranks):
        j = i
        while j > 0 and (
            length_class(result.longest[j - 1]) < length_class(result.longest[j])
            or (
                length_class(result.longest[j - 1]) == length_class(result.longest[j])
                and result.votes[j - 1] < result.votes[j]
            )
        ):
            for column in (result.tokens, result.longest, result.votes):
                column[j - 1], column[j] = column[j], column[j - 1]
            j -= 1


@compiled_within
def evidence(result: Continuations, found: int, token: int) -> int:
    """Return the kind of evidence of a lookup for `token`: its rank, match length and agreement, or its absence."""
    if found == 0:
        return NO_MATCH
    rank = 0
    while rank < RANKS and result.tokens[rank] != token:
        rank += 1
    shown = rank if rank < RANKS else 0
    votes = result.votes[shown]
    if found == 1:
        agreement = 0
    elif votes == found:
        agreement = 1
    else:
        agreement = 2 if 2 * votes >= found else 3
    return (length_class(result.longest[shown]) * AGREEMENTS + agreement) * (RANKS + 1) + rank
