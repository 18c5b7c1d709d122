"""Index of earlier occurrences of token runs, as hash chains that support removal.

A position belongs to one chain for each order: the positions whose last 1, 2, 4 or 8 tokens hash alike, newest first.
Adding a position pushes it on its chains, and removing it unlinks it. Both take constant time, and nothing is ever
rescanned. A suffix automaton finds the longest match as fast, but takes about four times the memory in arrays and
cannot remove a document. A suffix array can neither grow nor shrink cheaply.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from drafting.arrays import IntArray, own_zeros
from drafting.compiled import compiled, compiled_within

GAP = -1
"""Token of an empty slot; it separates documents and matches nothing."""

ORDERS = (8, 4, 2, 1)
"""Lengths of the runs that have chains, longest first; an index may leave out the last ones."""

MAX_MATCH = 24
"""Maximum length of a measured match, in tokens; a longer one predicts no better."""

MAX_CHAIN_SLOTS = 48
"""Maximum number of slots of a chain that one lookup visits."""

SUFFICIENT_OCCURRENCES = 6
"""Number of occurrences after which a lookup tries no shorter run."""

NONE = -1
"""End of a chain, and head of an empty one."""


class NgramArrays(NamedTuple):
    """Memory of the index, in the form that compiled code takes.

    Attributes:
        tokens: Token of each slot, GAP for none.  # [slots]
        older: Next slot of the chain, away from its head; NONE at the end.  # [orders, slots]
        newer: Previous slot of the chain; −2 − bucket at the head.  # [orders, slots]
        heads: Newest slot of each chain, NONE for an empty one.  # [orders, buckets], a power of two
    """

    tokens: IntArray
    older: IntArray
    newer: IntArray
    heads: IntArray


UNLINKED = -1
"""Entry of `newer` for a slot that is on no chain."""


def reserved_arrays(slots: int, orders: int) -> NgramArrays:
    """Return an index with room for slots, which take memory only once `add_slots` was called for them.

    It has the first `orders` of ORDERS, and takes up to 4 + 12 · orders bytes a slot.
    """
    heads = own_zeros((orders, 1 << max(8, int(np.ceil(np.log2(max(slots, 1) / 4))))), np.int32)
    heads[:] = NONE
    older, newer = own_zeros((orders, slots), np.int32), own_zeros((orders, slots), np.int32)
    return NgramArrays(own_zeros((slots,), np.int32), older, newer, heads)


def add_slots(index: NgramArrays, start: int, stop: int) -> None:
    """Make empty slots of start … stop−1, before which all slots were added. They may be empty ones already."""
    index.tokens[start:stop] = GAP
    index.older[:, start:stop] = NONE
    index.newer[:, start:stop] = UNLINKED


def empty_arrays(slots: int, orders: int) -> NgramArrays:
    """Return an index of empty slots; see `reserved_arrays`."""
    arrays = reserved_arrays(slots, orders)
    add_slots(arrays, 0, slots)
    return arrays


@compiled_within
def bucket_of(tokens: IntArray, last: int, count: int, mask: int) -> int:
    """Return the chain of the `count` tokens that end at index `last`; −1 if one is a gap or before the start."""
    if last + 1 < count:
        return -1
    key = np.uint64(count)
    for i in range(count):
        token = tokens[last - i]
        if token < 0:
            return -1
        key = (key ^ np.uint64(token)) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    return int(np.int64(key >> np.uint64(7)) & mask)


@compiled
def link(index: NgramArrays, start: int, stop: int) -> None:
    """Put slots start … stop−1, whose tokens are set, on their chains as the newest ones."""
    mask = index.heads.shape[1] - 1
    for slot in range(start, stop):
        for order in range(len(index.heads)):
            bucket = bucket_of(index.tokens, slot, ORDERS[order], mask)
            if bucket < 0:
                continue
            head = index.heads[order, bucket]
            index.older[order, slot] = head
            index.newer[order, slot] = -2 - bucket
            if head != NONE:
                index.newer[order, head] = slot
            index.heads[order, bucket] = slot


@compiled
def unlink(index: NgramArrays, start: int, stop: int) -> None:
    """Take slots start … stop−1 off their chains, after which their tokens may change."""
    for slot in range(start, stop):
        for order in range(len(index.heads)):
            newer, older = index.newer[order, slot], index.older[order, slot]
            if newer == UNLINKED:
                continue
            if newer >= 0:
                index.older[order, newer] = older
            else:
                index.heads[order, -2 - newer] = older
            if older != NONE:
                index.newer[order, older] = newer
            index.newer[order, slot] = UNLINKED
            index.older[order, slot] = NONE


@compiled_within
def match_length(tokens: IntArray, slot: int, tail: IntArray) -> int:
    """Return how many tokens that end at `slot` equal the end of `tail`, at most MAX_MATCH."""
    longest = min(MAX_MATCH, len(tail), slot + 1)
    for length in range(longest):
        token = tokens[slot - length]
        if token != tail[len(tail) - 1 - length] or token < 0:
            return length
    return longest


@compiled
def find(index: NgramArrays, tail: IntArray, slots: IntArray, lengths: IntArray) -> int:
    """Find occurrences of the end of `tail` that have a continuation: long runs before short ones, then newest first.

    Shorter runs are tried until there are SUFFICIENT_OCCURRENCES, single tokens only if no longer run occurs.

    Args:
        index: Where to search.
        tail: The last tokens of the context.  # [≥ 0]
        slots: Receives the slot of each occurrence's last token; the continuation is the next slot.  # [room]
        lengths: Receives the number of matching tokens.  # [room]

    Returns:
        The number of occurrences, at most `room`.
    """
    mask = index.heads.shape[1] - 1
    count = 0
    longest_tried = MAX_MATCH + 1
    for order in range(len(index.heads)):
        size = ORDERS[order]
        if count >= SUFFICIENT_OCCURRENCES or (size == 1 and count > 0):
            break
        bucket = bucket_of(tail, len(tail) - 1, size, mask)
        if bucket < 0:
            continue
        slot = index.heads[order, bucket]
        visited = 0
        while slot != NONE and visited < MAX_CHAIN_SLOTS and count < len(slots):
            visited += 1
            length = match_length(index.tokens, slot, tail)
            ends = slot + 1 >= len(index.tokens) or index.tokens[slot + 1] < 0
            if size <= length < longest_tried and not ends:
                slots[count], lengths[count] = slot, length
                count += 1
            slot = index.older[order, slot]
        longest_tried = size
    return count
