"""The single span in which two versions of a text, or of a list of lines, differ."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T", str, bytes, list[str])


def common_length(one: T, other: T) -> int:
    """Return the length of the common beginning. Bisects, because comparing slices is fast."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def changed_span(old: T, new: T) -> tuple[int, int, int]:
    """Return the start of the difference, its end in the old version and its end in the new one."""
    start = common_length(old, new)
    tail = common_length(old[start:][::-1], new[start:][::-1])
    return start, len(old) - tail, len(new) - tail
