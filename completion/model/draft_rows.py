"""The rows of the last `score` call, remembered by a cache until a path of them is committed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from completion.model.causal_model import IntArray


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
