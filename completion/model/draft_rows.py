"""Scored rows after a cache's past: a tree that exists until a path of it is committed or all rows are forgotten."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from completion.errors import ModelError
from completion.model.causal_model import KVCache
from drafting.arrays import IntArray
from drafting.draft_tree import depths_of

NO_ROWS = np.empty(0, dtype=np.int32)
GROWTH_SLOTS = 256
"""Step in which a cache grows, in slots: on a GPU, growth also costs new graphs."""


def lineages(parents: IntArray, first: int) -> tuple[IntArray, IntArray]:
    """Return the depths of the rows of a tree from row `first` on, and their ancestors.

    ancestors[i, d] is row i's ancestor of depth d, itself included; −1 below it.  # [rows], [rows, maximum depth + 1]
    """
    depths = depths_of(parents)
    ancestors = np.full((len(parents), int(depths.max(initial=0)) + 1), -1, dtype=np.int32)
    for node, parent in enumerate(parents.tolist()):
        if parent >= 0:
            ancestors[node] = ancestors[parent]
        ancestors[node, depths[node]] = node
    return depths[first:], ancestors[first:]


class TreeCache(KVCache):
    """Part that all caches share: the length of the past, and the tree after it. Slot length + i has row i.

    Attributes:
        growth_slots: Step in which the cache grows, in slots.
        slots: Number of allocated slots.
        parents: Parents of the rows after the committed slots.  # [rows]
    """

    __slots__ = ("parents", "slots")
    growth_slots: ClassVar[int] = GROWTH_SLOTS

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.slots = 0
        self.settle(0)

    @property
    def size_bytes(self) -> int:
        """Allocated memory."""
        held = self.held()
        return sum(size for _, size in held.spans) + held.gpu_bytes

    @classmethod
    def own(cls, cache: object, needed: int) -> Self:
        """Return a cache of this class with at least `needed` slots allocated.

        Raises:
            ModelError: The cache is of another class, or its capacity is smaller.
        """
        if not isinstance(cache, cls):
            raise ModelError(
                f"A cache of type {type(cache).__name__} belongs to another model. Make one with new_cache."
            )
        cache.reserve(needed)
        return cache

    def reserve(self, needed: int) -> None:
        """Allocate slots 0 .. needed-1 and some more, and keep the content of the allocated ones.

        A cache grows by a quarter or more, so that single tokens rarely copy it: all copies of its life together are at
        most four times its final size.

        Raises:
            ModelError: The cache's capacity is smaller.
            MemoryError, ModelError, RuntimeError: There is no memory for them. The cache stays as it was.
        """
        if needed > self.capacity:
            raise ModelError(f"{needed} slots are needed, but the cache has {self.capacity}. Make a larger cache.")
        if needed > self.slots:
            steps = -(-(needed + needed // 4) // self.growth_slots)
            slots = min(steps * self.growth_slots, self.capacity)
            self.resize(slots)
            self.slots = slots  # not before: kernels write to as many slots as this says

    def shrink(self) -> None:
        """Give back nothing: torch keeps freed memory for itself."""

    def compress(self) -> bool:
        """Keep the past rounded, in less memory; see `KVCache.compress`. This cache knows no such form."""
        self.shrink()
        return False

    @abstractmethod
    def resize(self, slots: int) -> None:
        """Allocate arrays of at least this number of slots, with the old arrays' content, then zeros.

        If there is no memory for them, the old arrays stay.
        """

    @abstractmethod
    def copy_slots(self, sources: IntArray, targets: IntArray) -> None:
        """Copy slots as if all at once; both ascend, and no target is after its source.  # [slots] twice."""

    def settle(self, length: int) -> None:
        """Make the first `length` slots the past, with no rows after it."""
        self.length, self.parents, self.kept = length, NO_ROWS, 0

    def truncate(self, length: int) -> None:
        """Forget every slot from `length` on, and every row."""
        self.settle(min(length, self.length))

    def reopen(self, length: int) -> None:
        """Turn the slots from `length` on back into a chain of kept rows."""
        self.kept = max(0, self.length - length)
        self.length -= self.kept
        self.parents = np.arange(-1, self.kept - 1, dtype=np.int32)

    def with_kept(self, parents: IntArray) -> IntArray:
        """Return the parents of the kept rows, then of new ones.  # [kept + rows]."""
        return np.concatenate((self.parents[: self.kept], parents)).astype(np.int32)

    def keep(self, rows: Sequence[int]) -> None:
        """Keep these rows for the next `score`, renumbered in this order, and forget the others.

        Raises:
            ValueError: The rows do not ascend, or a row's parent is not among them.
        """
        new_index = {-1: -1} | {row: index for index, row in enumerate(rows)}
        old_parents = [int(self.parents[row]) for row in rows]
        if sorted(new_index) != list(new_index) or not new_index.keys() >= set(old_parents):
            raise ValueError(f"Rows {list(rows)} do not ascend, or lack a parent.")
        self._move(rows)
        self.parents = np.array([new_index[parent] for parent in old_parents], dtype=np.int32)
        self.kept = len(rows)

    def commit(self, rows: Sequence[int]) -> None:
        """Append a path of the tree to the past.

        A node of depth d was computed for position length + d, its position in the path, so slots are only copied.

        Raises:
            ValueError: `rows` is no path of the tree.
        """
        expected = -1
        for row in rows:
            if not 0 <= row < len(self.parents) or self.parents[row] != expected:
                count = len(self.parents)
                raise ValueError(f"Rows {list(rows)} are no path of the last scored tree ({count} rows).")
            expected = row
        self._move(rows)
        self.settle(self.length + len(rows))

    def _move(self, rows: Sequence[int]) -> None:
        sources, targets = np.asarray(rows, dtype=np.int32), np.arange(len(rows), dtype=np.int32)
        moved = np.flatnonzero(sources != targets)
        if len(moved):
            self.copy_slots(self.length + sources[moved], self.length + targets[moved])


def tree_distances(parents: IntArray, first: int) -> tuple[IntArray, npt.NDArray[np.int16]]:
    """Return the depths of the rows of a tree from row `first` on, and their distances from their ancestors.

    A distance counts the positions up to the row, itself included; 0 stands for a row that is no ancestor.

    Returns:
        # [rows], [rows, all rows]
    """
    depths, ancestors = lineages(parents, first)
    distances = np.zeros((len(ancestors), len(parents)), dtype=np.int16)
    row, depth = np.nonzero(ancestors >= 0)
    distances[row, ancestors[row, depth]] = depths[row] - depth + 1
    return depths, distances
