"""Continue as the same words were continued before: lookup of the context's end in the request's own tokens.

Source: prompt lookup decoding, with the occurrences ranked and counted as in "SuffixDecoding: Extreme Speculative
Decoding for Emerging AI Applications", so that a tree can grow where they disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple

import numpy as np

from drafting.arrays import IntArray
from drafting.compiled import compiled
from drafting.sources.ngram_index import GAP, MAX_MATCH, ORDERS, NgramArrays, empty_arrays, find, link

OCCURRENCES = 24
"""Occurrences that vote on a continuation."""

RANKS = 4
"""Continuations kept of one place."""

LENGTH_CLASSES = 9
AGREEMENTS = 4
CLASSES = LENGTH_CLASSES * AGREEMENTS * (RANKS + 1) + 1
"""Kinds of evidence for or against a token: match length, agreement, rank or absence; and "no match at all"."""

NO_MATCH = CLASSES - 1


class Continuations(NamedTuple):
    """Scratch memory and result of a lookup.

    Attributes:
        slots: Where the context's end occurs.  # [OCCURRENCES]
        lengths: How many tokens match there.  # [OCCURRENCES]
        tokens: The continuations, best first.  # [RANKS]
        longest: Longest match of each.  # [RANKS]
        votes: Occurrences of each.  # [RANKS]
    """

    slots: IntArray
    lengths: IntArray
    tokens: IntArray
    longest: IntArray
    votes: IntArray


def continuations_scratch() -> Continuations:
    """Memory for `rank_continuations`."""
    return Continuations(*(np.zeros(n, dtype=np.int32) for n in (OCCURRENCES, OCCURRENCES, RANKS, RANKS, RANKS)))


class PromptLookup:
    """An index over the tokens of one request, in order; each new token is added once."""

    def __init__(self, tokens: IntArray, room: int = 256) -> None:
        """Index a prompt, GAP where no match may cross, with room for so many tokens before memory grows."""
        self.arrays = empty_arrays(len(tokens) + room, len(ORDERS))
        self._count = 0
        self.observe(tokens)

    def copy(self) -> PromptLookup:
        """An index with the same tokens, which others may be added to."""
        other = copy(self)
        other.arrays = NgramArrays(*(array.copy() for array in self.arrays))
        return other

    def observe(self, tokens: Sequence[int] | IntArray) -> None:
        """Add tokens behind the last ones."""
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


@compiled
def length_class(length: int) -> int:
    """Match lengths 1, 2, 3, 4, 5–6, 7–9, 10–14, 15–23, longer."""
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
    """What followed where the end of `tail` occurred: longest match first, then most frequent, then most recent.

    Args:
        index: Where to look.
        tail: The last tokens of the context.  # [MAX_MATCH]
        skipped: So many last tokens of `tail` stand at other tokens' places: with 1, what follows a new name is
            found where another name stood between the same words.
        result: Receives the continuations; unused ranks hold GAP.

    Returns:
        Occurrences that vote; 0 leaves the result without meaning.
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


@compiled
def _sort(result: Continuations, ranks: int) -> None:
    """Insertion sort by (longest, votes), newest first among equals."""
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


@compiled
def evidence(result: Continuations, found: int, token: int) -> int:
    """Which kind of evidence a lookup gives for `token`: its rank, match length and agreement, or its absence."""
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
