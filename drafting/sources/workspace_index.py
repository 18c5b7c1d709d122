"""The tokens of a workspace's documents, searchable while they change: what was written before is written again."""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drafting.arrays import IntArray
from drafting.compiled import compiled
from drafting.sources.ngram_index import GAP, NgramArrays, empty_arrays, link, unlink

BUDGET_TOKENS = 1_500_000
"""Most tokens of one workspace (about 80 MB of index)."""

ORDERS_KEPT = 3
"""A single token tells nothing in a whole workspace: runs of 8, 4 and 2 have chains."""

FIRST_SLOTS = 1 << 14
GROWTH = 1.5


@dataclass(slots=True)
class _Extent:
    """Where a document lies: `length` tokens from slot `start` on; of `room` slots the last stays a gap."""

    start: int
    length: int
    room: int
    is_open: bool


class WorkspaceIndex:
    """An index of one workspace's documents, by path.

    Lookups from another thread see a document while it is replaced in part; that can spoil a guess, never a text.
    """

    def __init__(self, budget_tokens: int = BUDGET_TOKENS) -> None:
        """An empty index that will hold at most so many tokens."""
        self.arrays = empty_arrays(FIRST_SLOTS, ORDERS_KEPT)
        self.budget_tokens = budget_tokens
        self._documents: dict[str, _Extent] = {}  # least recently updated first
        self._free: list[tuple[int, int]] = [(0, FIRST_SLOTS)]  # (start, slots), ascending, never adjacent
        self._lock = threading.Lock()

    @property
    def tokens(self) -> int:
        """Tokens of all documents."""
        return sum(extent.length for extent in self._documents.values())

    @property
    def size_bytes(self) -> int:
        """Memory taken by the index."""
        return sum(array.nbytes for array in self.arrays)

    def paths(self) -> tuple[str, ...]:
        """The documents held, least recently updated first."""
        return tuple(self._documents)

    def update(self, path: str, tokens: Sequence[int] | IntArray, *, is_open: bool = False) -> None:
        """Add a document, or replace its text: only what follows the first change is indexed anew.

        Where the budget is too small, documents that are not open go first, the least recently updated of them before
        the others. A document larger than the whole budget is not held.
        """
        new = np.asarray(tokens, dtype=np.int32)
        with self._lock:
            extent = self._documents.pop(path, None)
            if extent is not None and len(new) < extent.room:
                extent.is_open = is_open
                extent.length = replace_tokens(self.arrays, extent.start, extent.length, new)
                self._documents[path] = extent
                return
            if extent is not None:
                self._release(extent)
            if 0 < len(new) <= self.budget_tokens:
                self._make_room(len(new))
                self._documents[path] = self._place(new, is_open=is_open)

    def remove(self, path: str) -> None:
        """Forget a document, if it is held: no token of it can be found again."""
        with self._lock:
            extent = self._documents.pop(path, None)
            if extent is not None:
                self._release(extent)

    def _place(self, tokens: IntArray, *, is_open: bool) -> _Extent:
        start, room = self._allocate(len(tokens) + len(tokens) // 8 + 16)
        replace_tokens(self.arrays, start, 0, tokens)
        return _Extent(start, len(tokens), room, is_open)

    def _allocate(self, slots: int) -> tuple[int, int]:
        """The first free run of enough slots; all documents move to larger arrays where there is none."""
        for place, (start, size) in enumerate(self._free):
            if size >= slots:
                del self._free[place]
                if size > slots:
                    self._free.insert(place, (start + slots, size - slots))
                return start, slots
        self._rebuild(slots)
        return self._allocate(slots)

    def _release(self, extent: _Extent) -> None:
        """Give slots back, joined with free neighbours."""
        replace_tokens(self.arrays, extent.start, extent.length, np.empty(0, dtype=np.int32))
        start, size = extent.start, extent.room
        place = bisect_left(self._free, (start, size))
        if place < len(self._free) and self._free[place][0] == start + size:
            size += self._free.pop(place)[1]
        if place > 0 and sum(self._free[place - 1]) == start:
            start, before = self._free.pop(place - 1)
            size += before
        insort(self._free, (start, size))

    def _make_room(self, tokens: int) -> None:
        """Drop documents until so many more tokens fit the budget."""
        held = self.tokens
        by_worth = sorted(
            self._documents.items(), key=lambda item: item[1].is_open
        )  # stable: oldest first in each half
        for path, extent in by_worth:
            if held + tokens <= self.budget_tokens:
                return
            held -= extent.length
            self._release(self._documents.pop(path))

    def _rebuild(self, wanted: int) -> None:
        """Move all documents into larger arrays, side by side; lookups use the old ones until it is done."""
        rooms = sum(extent.room for extent in self._documents.values())
        slots = int((rooms + wanted) * GROWTH) + FIRST_SLOTS
        arrays, at = empty_arrays(slots, ORDERS_KEPT), 0
        for extent in self._documents.values():
            replace_tokens(arrays, at, 0, self.arrays.tokens[extent.start : extent.start + extent.length])
            extent.start, at = at, at + extent.room
        self._free = [(at, slots - at)]
        self.arrays = arrays


@compiled
def replace_tokens(index: NgramArrays, start: int, length: int, new: IntArray) -> int:
    """Write a document over its old text, from the first change on.

    Args:
        index: Changed in place.
        start: The document's first slot.
        length: Its old length.
        new: Its new tokens; a gap must follow them in the index.

    Returns:
        The new length.
    """
    same = 0
    while same < min(length, len(new)) and index.tokens[start + same] == new[same]:
        same += 1
    unlink(index, start + same, start + length)
    for i in range(same, len(new)):
        index.tokens[start + i] = new[i]
    for i in range(len(new), length):
        index.tokens[start + i] = GAP
    link(index, start + same, start + len(new))
    return len(new)
