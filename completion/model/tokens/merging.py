"""Byte-pair encoding of a piece of text with arrays, token for token what the tokenizers library returns.

Source: "Neural Machine Translation of Rare Words with Subword Units", section 3.2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from drafting.arrays import IntArray
from drafting.compiled import compiled, compiled_within

LongArray = npt.NDArray[np.int64]

REMOVED = -1
"""Token that became a part of the one before it; also the neighbour of the first and the last token."""
HEAP_ENTRIES = 3
"""Maximum number of entries of the heap for each byte: one at first, two for each merge."""


@compiled
def merge(tokens: IntArray, neighbours: IntArray, heap: LongArray, pairs: LongArray, ranks: IntArray) -> None:
    """Merge neighbours, those with the lowest rank first, the leftmost among equals, until no pair is left.

    Args:
        tokens: Tokens of the piece's bytes; the result's tokens stay, with REMOVED between.  # [bytes]
        neighbours: Scratch.  # [2, bytes]
        heap: Scratch.  # [HEAP_ENTRIES · bytes]
        pairs: Pairs that can be merged, as left · 2³² + right, ascending.  # [pairs]
        ranks: Rank of each pair, and the token that it becomes.  # [2, pairs]
    """
    before, after = neighbours[0], neighbours[1]
    size = 0
    for i in range(len(tokens)):
        before[i], after[i] = i - 1, i + 1
    after[len(tokens) - 1] = REMOVED
    for i in range(len(tokens) - 1):
        size = _offer(tokens, after, i, heap, size, pairs, ranks)
    while size > 0:
        best = heap[0]
        size = _take_first(heap, size)
        left = best & 0xFFFFFFFF
        if tokens[left] == REMOVED or after[left] == REMOVED:
            continue
        right = after[left]
        found = _find(pairs, tokens[left], tokens[right])
        if found < 0 or ranks[0, found] != best >> 32:
            continue  # a neighbour was merged meanwhile
        tokens[left], tokens[right] = ranks[1, found], REMOVED
        after[left] = after[right]
        if after[left] != REMOVED:
            before[after[left]] = left
            size = _offer(tokens, after, left, heap, size, pairs, ranks)
        if before[left] != REMOVED:
            size = _offer(tokens, after, np.int64(before[left]), heap, size, pairs, ranks)  # type: ignore[arg-type]


@compiled_within
def _offer(
    tokens: IntArray, after: IntArray, left: int, heap: LongArray, size: int, pairs: LongArray, ranks: IntArray
) -> int:
    """Put a token and the next one on the heap if they can be merged; return the heap's size."""
    found = _find(pairs, tokens[left], tokens[after[left]])
    if found < 0:
        return size
    entry, at = (np.int64(ranks[0, found]) << 32) | left, size
    while at > 0 and heap[(at - 1) // 2] > entry:
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = entry
    return size + 1


@compiled_within
def _take_first(heap: LongArray, size: int) -> int:
    """Remove the heap's first entry; return its size."""
    size -= 1
    entry, at = heap[size], 0
    while True:
        child = 2 * at + 1
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if child >= size or heap[child] >= entry:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = entry
    return size


@compiled_within
def _find(pairs: LongArray, left: int, right: int) -> int:
    """Return the index of a pair, −1 if it cannot be merged."""
    wanted = (np.int64(left) << 32) | right
    low, high = 0, len(pairs)
    while low < high:
        middle = (low + high) // 2
        if pairs[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < len(pairs) and pairs[low] == wanted else -1
