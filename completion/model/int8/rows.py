"""Which slots the rows of a pass are written to and see, as the kernels take them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from completion.model.draft_rows import NO_ROWS, lineages
from completion.model.int8.cache import Int8Cache
from completion.model.int8.kernels.views import RowsView, Sequences
from drafting.arrays import IntArray


def prompt_rows(slots: IntArray, wanted: IntArray) -> RowsView:
    """Return rows of a prompt, each of which sees all slots up to its own; slots ascend.  # [rows], [wanted]."""
    slots, nothing = np.ascontiguousarray(slots, dtype=np.int32), np.zeros(len(slots) + 1, dtype=np.int32)
    return RowsView(nothing[1:], slots, slots, slots + np.int32(1), nothing, NO_ROWS, wanted.astype(np.int32))


def tree_rows(parents: IntArray, length: int, first: int = 0, skipped: int = 0) -> RowsView:
    """Return what nodes of a draft tree see: the past, a run of ancestors in the next slots, single other ancestors.

    Nodes before `first` are kept rows and are not computed. The first `skipped` of the others get no logits.
    """
    (depths, ancestors), count = lineages(parents, first), len(parents) - first
    in_a_run = np.cumprod(ancestors == np.arange(ancestors.shape[1]), axis=1).sum(axis=1)  # that of depth d is row d
    single = (ancestors >= 0) & (np.arange(ancestors.shape[1]) >= in_a_run[:, None])
    start = np.concatenate([[0], np.cumsum(single.sum(axis=1))]).astype(np.int32)
    return RowsView(
        sequences=np.zeros(count, dtype=np.int32),
        slots=np.arange(length + first, length + first + count, dtype=np.int32),
        positions=(length + depths).astype(np.int32),
        contiguous=(length + in_a_run).astype(np.int32),
        singles_start=start,
        singles=(length + ancestors[single]).astype(np.int32),
        wanted=np.arange(skipped, count, dtype=np.int32),
    )


def joined_rows(parts: Sequence[RowsView]) -> RowsView:
    """Return the rows of several sequences as those of one pass."""
    if len(parts) == 1:
        return parts[0]
    rows = np.cumsum([0, *(len(part.slots) for part in parts)], dtype=np.int32)
    singles = np.cumsum([0, *(len(part.singles) for part in parts)], dtype=np.int32)
    starts = [part.singles_start[:-1] + before for part, before in zip(parts, singles[:-1], strict=True)]
    return RowsView(
        sequences=np.repeat(np.arange(len(parts), dtype=np.int32), np.diff(rows)),
        slots=np.concatenate([part.slots for part in parts]),
        positions=np.concatenate([part.positions for part in parts]),
        contiguous=np.concatenate([part.contiguous for part in parts]),
        singles_start=np.concatenate([*starts, singles[-1:]]),
        singles=np.concatenate([part.singles for part in parts]),
        wanted=np.concatenate([part.wanted + before for part, before in zip(parts, rows[:-1], strict=True)]),
    )


def wanted_first(rows: RowsView) -> tuple[RowsView, IntArray]:
    """Return the rows with those whose logits are wanted first, and the old index of each.  # [rows]."""
    count = len(rows.slots)
    order = np.concatenate([rows.wanted, np.setdiff1d(np.arange(count), rows.wanted)]).astype(np.int32)
    singles = [rows.singles[rows.singles_start[row] : rows.singles_start[row + 1]] for row in order]
    return RowsView(
        sequences=rows.sequences[order],
        slots=rows.slots[order],
        positions=rows.positions[order],
        contiguous=rows.contiguous[order],
        singles_start=np.cumsum([0, *map(len, singles)], dtype=np.int32),
        singles=np.concatenate(singles),
        wanted=np.arange(len(rows.wanted), dtype=np.int32),
    ), order


def sequences_of(caches: Sequence[Int8Cache]) -> Sequences:
    """Return where the keys and values of these caches of one model are, as long as nothing changes them."""
    views = [cache.view for cache in caches]
    return Sequences(
        addresses=np.array([[array.ctypes.data for array in view[:3]] for view in views], dtype=np.int64),
        slots=np.array([view.plain_keys.shape[2] for view in views], dtype=np.int64),
        cosines=views[0].cosines,
        sines=views[0].sines,
        first_angles=views[0].first_angles,
        windows=views[0].windows,
    )
