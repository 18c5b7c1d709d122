"""The scored rows behind a cache's past: a tree that lives until a path of it is committed or all is forgotten."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from completion.errors import ModelError
from drafting.arrays import IntArray

NO_ROWS = np.empty(0, dtype=np.int32)
GROWTH_SLOTS = 256
"""Slots in multiples of which a cache grows: a usual completion fits behind its prompt without growing again."""


def depths_of(parents: IntArray) -> IntArray:
    """Depth of each node, 0 for a root.  # [rows].

    Raises:
        ValueError: A parent does not come before its child.
    """
    depths = np.zeros(len(parents), dtype=np.int32)
    for node, parent in enumerate(parents.tolist()):
        if not -1 <= parent < node:
            raise ValueError(f"Row {node} has parent {parent}; a parent must be −1 or come before its child.")
        if parent >= 0:
            depths[node] = depths[parent] + 1
    return depths


def ancestors_of(parents: IntArray, depths: IntArray) -> IntArray:
    """ancestors[i, d] is row i's ancestor of depth d, itself included; −1 below it.  # [rows, greatest depth + 1]."""
    ancestors = np.full((len(parents), int(depths.max(initial=0)) + 1), -1, dtype=np.int32)
    for node, parent in enumerate(parents.tolist()):
        if parent >= 0:
            ancestors[node] = ancestors[parent]
        ancestors[node, depths[node]] = node
    return ancestors


class TreeCache(ABC):
    """What every cache does alike: keep track of its past and of the tree behind it. Slot length + i holds row i.

    Attributes:
        capacity: Most slots that the cache may ever have.
        slots: Slots that are allocated.
        length: Committed slots; what lies behind is scratch space.
        parents: Parents of the rows behind them.  # [rows]
        kept: So many first rows stay when the next ones are scored; the others are written over.
    """

    __slots__ = ("capacity", "kept", "length", "parents", "slots")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.slots = 0
        self.settle(0)

    def reserve(self, needed: int) -> None:
        """Allocate slots 0 .. needed-1 and some more, keeping what the allocated ones hold.

        A cache grows by a quarter at least, so that single tokens seldom copy it: all copies of its life together are
        at most four times its final size.

        Raises:
            ModelError: The cache may not have so many slots.
        """
        if needed > self.capacity:
            raise ModelError(f"{needed} slots are needed, but the cache has {self.capacity}.")
        if needed > self.slots:
            steps = -(-(needed + needed // 4) // GROWTH_SLOTS)
            self.slots = min(steps * GROWTH_SLOTS, self.capacity)
            self.resize(self.slots)

    @property
    @abstractmethod
    def size_bytes(self) -> int:
        """Memory that is allocated."""

    @abstractmethod
    def resize(self, slots: int) -> None:
        """Allocate arrays of at least so many slots, zero where the old arrays, which are fewer, hold nothing."""

    @abstractmethod
    def copy_slots(self, sources: IntArray, targets: IntArray) -> None:
        """Copy slots as if all at once; both ascend, and no target lies behind its source.  # [slots] twice."""

    def settle(self, length: int) -> None:
        """So many slots are the past now, and no row lies behind them."""
        self.length, self.parents, self.kept = length, NO_ROWS, 0

    def truncate(self, length: int) -> None:
        """Forget every slot from `length` on, and every row."""
        self.settle(min(length, self.length))

    def reopen(self, length: int) -> None:
        """Make the slots from `length` on a chain of kept rows again."""
        self.kept = max(0, self.length - length)
        self.length -= self.kept
        self.parents = np.arange(-1, self.kept - 1, dtype=np.int32)

    def with_kept(self, parents: IntArray) -> IntArray:
        """Parents of the kept rows and of new ones behind them.  # [kept + rows]."""
        return np.concatenate((self.parents[: self.kept], parents)).astype(np.int32)

    def keep(self, rows: Sequence[int]) -> None:
        """Keep these rows for the next `score`, numbered anew in this order, and forget the others.

        Raises:
            ValueError: They do not ascend, or a row's parent is not among them.
        """
        place = {-1: -1} | {row: index for index, row in enumerate(rows)}
        above = [int(self.parents[row]) for row in rows]
        if sorted(place) != list(place) or not place.keys() >= set(above):
            raise ValueError(f"Rows {list(rows)} do not ascend, or lack a parent.")
        self._move(rows)
        self.parents = np.array([place[parent] for parent in above], dtype=np.int32)
        self.kept = len(rows)

    def commit(self, rows: Sequence[int]) -> None:
        """Make a path of the tree part of the past.

        A node of depth d was computed for position length + d, which is where the path puts it: only copies.

        Raises:
            ValueError: `rows` is no path of that tree.
        """
        check_path(rows, self.parents)
        self._move(rows)
        self.settle(self.length + len(rows))

    def _move(self, rows: Sequence[int]) -> None:
        sources, targets = np.asarray(rows, dtype=np.int32), np.arange(len(rows), dtype=np.int32)
        moved = np.flatnonzero(sources != targets)
        if len(moved):
            self.copy_slots(self.length + sources[moved], self.length + targets[moved])


def check_path(rows: Sequence[int], parents: IntArray) -> None:
    """Make sure that `rows` runs from a root downwards.

    Raises:
        ValueError: It does not, or there is no such row.
    """
    expected = -1
    for row in rows:
        if not 0 <= row < len(parents) or parents[row] != expected:
            raise ValueError(f"Rows {list(rows)} are no path of the last scored tree ({len(parents)} rows).")
        expected = row


def tree_places(parents: IntArray, first: int, length: int) -> tuple[IntArray, IntArray, npt.NDArray[np.bool_]]:
    """Where the rows of a tree from row `first` on lie behind a past of `length` slots, and what they see.

    Returns:
        Slots, positions, and which slots each row sees: the past, its ancestors and itself.
        # [rows] twice, [rows, length + all rows]
    """
    depths = depths_of(parents)
    ancestors = ancestors_of(parents, depths)[first:]
    visible = np.zeros((len(ancestors), length + len(parents)), dtype=np.bool_)
    visible[:, :length] = True
    row, depth = np.nonzero(ancestors >= 0)
    visible[row, length + ancestors[row, depth]] = True
    slots = np.arange(length + first, length + len(parents), dtype=np.int32)
    return slots, length + depths[first:], visible
