"""Index of the tokens of a workspace's documents, searchable while documents change."""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drafting.arrays import IntArray
from drafting.compiled import compiled
from drafting.sources.ngram_index import GAP, NgramArrays, add_slots, link, reserved_arrays, unlink

BUDGET_TOKENS = 1_500_000
"""Maximum number of tokens of one workspace (about 80 MB of index)."""

INDEXED_ORDERS = 3
"""Number of run lengths with chains: 8, 4 and 2. A single token predicts nothing in a whole workspace."""

INITIAL_SLOTS = 1 << 14
"""Number of slots of a new index."""
GROWTH = 1.5
"""Factor by which the slots exceed what is needed when an index grows."""


@dataclass(slots=True)
class _Extent:
    """Slots of a document.

    Attributes:
        start: First slot.
        length: Number of tokens.
        room: Number of slots, of which the last stays a gap.
        is_open: Whether the document is open in an editor.
    """

    start: int
    length: int
    room: int
    is_open: bool


class WorkspaceIndex:
    """Index of one workspace's documents, by path.

    A lookup from another thread may see a half replaced document. That can make a guess wrong, never a suggestion.
    """

    def __init__(self, budget_tokens: int = BUDGET_TOKENS) -> None:
        """Make an empty index of at most `budget_tokens` tokens."""
        self.arrays = reserved_arrays(INITIAL_SLOTS, INDEXED_ORDERS)
        self.budget_tokens = budget_tokens
        self._documents: dict[str, _Extent] = {}  # least recently updated first
        # (start, slots), ascending, never adjacent. An allocation takes the start of one, so slots that were never
        # allocated come last, and take no memory.
        self._free: list[tuple[int, int]] = [(0, INITIAL_SLOTS)]
        self._lock = threading.Lock()

    @property
    def tokens(self) -> int:
        """Number of tokens of all documents."""
        return sum(extent.length for extent in self._documents.values())

    @property
    def size_bytes(self) -> int:
        """Memory of the index."""
        return sum(array.nbytes for array in self.arrays)

    def update(self, path: str, tokens: Sequence[int] | IntArray, *, is_open: bool = False) -> None:
        """Add a document, or replace its text. Only what follows the first change is indexed anew.

        If the budget is exceeded, documents are removed: those that are not open first, each group by the time of its
        last update. A document larger than the whole budget is not added.
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
        """Remove a document if the index has it; none of its tokens can be found afterwards."""
        with self._lock:
            extent = self._documents.pop(path, None)
            if extent is not None:
                self._release(extent)

    def _place(self, tokens: IntArray, *, is_open: bool) -> _Extent:
        start, room = self._allocate(len(tokens) + len(tokens) // 8 + 16)
        replace_tokens(self.arrays, start, 0, tokens)
        return _Extent(start, len(tokens), room, is_open)

    def _allocate(self, slots: int) -> tuple[int, int]:
        """Return the first free run of enough slots; if there is none, move all documents to larger arrays."""
        for index, (start, size) in enumerate(self._free):
            if size >= slots:
                del self._free[index]
                if size > slots:
                    self._free.insert(index, (start + slots, size - slots))
                add_slots(self.arrays, start, start + slots)
                return start, slots
        self._rebuild(slots)
        return self._allocate(slots)

    def _release(self, extent: _Extent) -> None:
        """Free a document's slots and join them with free neighbours."""
        replace_tokens(self.arrays, extent.start, extent.length, np.empty(0, dtype=np.int32))
        start, size = extent.start, extent.room
        index = bisect_left(self._free, (start, size))
        if index < len(self._free) and self._free[index][0] == start + size:
            size += self._free.pop(index)[1]
        if index > 0 and sum(self._free[index - 1]) == start:
            start, before = self._free.pop(index - 1)
            size += before
        insort(self._free, (start, size))

    def _make_room(self, tokens: int) -> None:
        """Remove documents until this number of further tokens fits the budget."""
        used_tokens = self.tokens
        removal_order = sorted(
            self._documents.items(), key=lambda item: item[1].is_open
        )  # stable: least recently updated first in each half
        for path, extent in removal_order:
            if used_tokens + tokens <= self.budget_tokens:
                return
            used_tokens -= extent.length
            self._release(self._documents.pop(path))

    def _rebuild(self, wanted: int) -> None:
        """Move all documents into larger arrays, without free slots between; lookups use the old arrays until then."""
        rooms = sum(extent.room for extent in self._documents.values())
        slots = int((rooms + wanted) * GROWTH) + INITIAL_SLOTS
        arrays, at = reserved_arrays(slots, INDEXED_ORDERS), 0
        add_slots(arrays, 0, rooms)
        for extent in self._documents.values():
            replace_tokens(arrays, at, 0, self.arrays.tokens[extent.start : extent.start + extent.length])
            extent.start, at = at, at + extent.room
        self._free = [(at, slots - at)]
        self.arrays = arrays


@compiled
def replace_tokens(index: NgramArrays, start: int, length: int, new: IntArray) -> int:
    """Replace a document's tokens, from the first change on.

    Args:
        index: Changed in place.
        start: The document's first slot.
        length: Number of its old tokens.
        new: Its new tokens; a gap must follow them in the index.

    Returns:
        The number of new tokens.
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
