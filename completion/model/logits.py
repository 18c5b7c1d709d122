"""Logits in host memory: the best token, the best few tokens, whole rows."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from drafting.arrays import FloatArray, IntArray

_PANEL = 64
"""Channels of a panel of the head; see `kernels.int8_product`."""
_BLOCK = 256
"""Values whose maximum is compared with the running threshold at once: the compiler turns it into vector code."""


_KEPT = 8
"""Whoever asks for the best token mostly asks for the next few as well: one pass finds them all."""


class DenseLogits:
    """Logits as one array.

    Args:
        values: Logits; a row may be longer than the vocabulary.  # [rows, ≥ vocabulary_size]
        vocabulary_size: Number of columns that are tokens; all by default.
    """

    __slots__ = ("_best", "_tokens", "size", "values")

    def __init__(self, values: FloatArray, vocabulary_size: int | None = None) -> None:
        self.values = values
        self.size = values.shape[1] if vocabulary_size is None else vocabulary_size
        self._tokens = np.zeros((len(values), 0), dtype=np.int32)
        self._best = np.zeros((len(values), 0), dtype=np.float32)

    def argmax(self) -> IntArray:
        """Return the best token of each row, the lowest id among equals.  # [rows]."""
        return self.top(1)[0][:, 0]

    def top(self, count: int) -> tuple[IntArray, FloatArray]:
        """Return the best `count` tokens of each row with their logits, best first.  # [rows, count] twice."""
        if self._tokens.shape[1] < count:
            rows, kept = len(self.values), max(count, _KEPT)
            self._tokens = np.zeros((rows, kept), dtype=np.int32)
            self._best = np.full((rows, kept), -np.inf, dtype=np.float32)
            self._find(self._tokens, self._best)
        return self._tokens[:, :count], self._best[:, :count]

    def row(self, index: int) -> FloatArray:
        """Return one row, read-only.  # [vocabulary_size]."""
        row = self.values[index, : self.size]
        row.flags.writeable = False
        return row

    def _find(self, tokens: IntArray, best: FloatArray) -> None:
        """Write the best tokens of each row and their logits.  # [rows, kept] twice."""
        _top(self.values[:, : self.size], tokens, best)


@numba.njit(cache=True, nogil=True)
def _top(values: FloatArray, tokens: IntArray, best: FloatArray) -> None:
    """One pass a row: only blocks whose maximum beats the worst kept value are looked at value by value."""
    rows, vocabulary = values.shape
    for row in range(rows):
        for start in range(0, vocabulary, _BLOCK):
            end = min(start + _BLOCK, vocabulary)
            if _maximum(values[row, start:end]) > best[row, -1]:
                for token in range(start, end):
                    if values[row, token] > best[row, -1]:
                        _insert(tokens[row], best[row], token, values[row, token])


@numba.njit(cache=True, nogil=True, fastmath=True)
def _maximum(values: FloatArray) -> np.float32:
    largest = values[0]
    for value in values:
        largest = max(largest, value)
    return largest


@numba.njit(cache=True, nogil=True)
def _insert(tokens: IntArray, best: FloatArray, token: int, value: np.float32) -> None:
    """Insertion keeps equals in order of their ids, since ids arrive ascending."""
    place = len(best) - 1
    while place > 0 and best[place - 1] < value:
        best[place] = best[place - 1]
        tokens[place] = tokens[place - 1]
        place -= 1
    best[place] = value
    tokens[place] = token


class PanelLogits(DenseLogits):
    """Logits with the largest of every 64, which makes the best few tokens cheap to find.

    Args:
        values: Logits, a row longer than the vocabulary.  # [rows, panels · 64]
        largest: The largest of every 64.  # [rows, panels]
        vocabulary_size: Number of columns that are tokens.
    """

    __slots__ = ("largest",)

    def __init__(self, values: FloatArray, largest: FloatArray, vocabulary_size: int) -> None:
        super().__init__(values, vocabulary_size)
        self.largest = largest

    @classmethod
    def joined(cls, parts: list[PanelLogits], order: npt.NDArray[np.int64]) -> PanelLogits:
        """Rows of several passes as one.  order: place of each wanted row among all parts' rows."""
        if len(parts) == 1 and np.array_equal(order, np.arange(len(order))):
            return parts[0]
        values = np.concatenate([part.values for part in parts])[order]
        return cls(values, np.concatenate([part.largest for part in parts])[order], parts[0].size)

    def _find(self, tokens: IntArray, best: FloatArray) -> None:
        """See `DenseLogits`."""
        _top_of_panels(self.values[:, : self.size], self.largest, tokens, best)


@numba.njit(cache=True, nogil=True)
def _top_of_panels(values: FloatArray, largest: FloatArray, tokens: IntArray, best: FloatArray) -> None:
    """Look only into panels whose largest value beats the worst kept one."""
    rows, vocabulary = values.shape
    width = _PANEL
    for row in range(rows):
        for panel in range(largest.shape[1]):
            if largest[row, panel] > best[row, -1]:
                for token in range(panel * width, min((panel + 1) * width, vocabulary)):
                    if values[row, token] > best[row, -1]:
                        _insert(tokens[row], best[row], token, values[row, token])
