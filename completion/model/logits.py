"""Logits in host memory: the best token, the best few tokens, whole rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from completion.model.causal_model import Logits
from drafting.arrays import FloatArray, IntArray
from drafting.compiled import compiled, compiled_freely, compiled_within

_PANEL = 64
"""Channels of a panel of the head; see `kernels.int8_product`."""
_BLOCK = 256
"""Number of logits whose maximum is compared at once with the worst kept one; the comparison becomes vector code."""


_MIN_KEPT = 8
"""Minimum number of best tokens that one pass finds: most callers want a few more than the best."""


class DenseLogits:
    """Logits as one array.

    Args:
        values: Logits; a row may be longer than the vocabulary.  # [rows, ≥ vocabulary_size]
        vocabulary_size: Number of first columns that are tokens; all by default.
        pass_rows: Number of rows of the pass that computed them; those of `values` by default.
    """

    __slots__ = ("_best", "_tokens", "pass_rows", "size", "values")

    def __init__(self, values: FloatArray, vocabulary_size: int | None = None, pass_rows: int | None = None) -> None:
        self.values = values
        self.pass_rows = len(values) if pass_rows is None else pass_rows
        self.size = values.shape[1] if vocabulary_size is None else vocabulary_size
        self._tokens = np.zeros((len(values), 0), dtype=np.int32)
        self._best = np.zeros((len(values), 0), dtype=np.float32)

    def argmax(self) -> IntArray:
        """Return the best token of each row, the lowest id among equals.  # [rows]."""
        return self.top(1)[0][:, 0]

    def top(self, count: int) -> tuple[IntArray, FloatArray]:
        """Return the best `count` tokens of each row with their logits, best first.  # [rows, count] twice."""
        if self._tokens.shape[1] < count:
            rows, kept = len(self.values), max(count, _MIN_KEPT)
            self._tokens = np.zeros((rows, kept), dtype=np.int32)
            self._best = np.full((rows, kept), -np.inf, dtype=np.float32)
            self._find(self._tokens, self._best)
        return self._tokens[:, :count], self._best[:, :count]

    def log_sum(self, index: int) -> float:
        """Return log Σ exp of one row."""
        row = self.row(index)
        best = row.max()
        return float(best + np.log(np.exp(row - best).sum()))

    def row(self, index: int) -> FloatArray:
        """Return one row, read-only.  # [vocabulary_size]."""
        row = self.values[index, : self.size]
        row.flags.writeable = False
        return row

    def _find(self, tokens: IntArray, best: FloatArray) -> None:
        """Find the best tokens of each row and their logits.  # [rows, kept] twice."""
        _top(self.values[:, : self.size], tokens, best)


@compiled
def _top(values: FloatArray, tokens: IntArray, best: FloatArray) -> None:
    """Find the best tokens in one pass a row; only blocks whose maximum beats the worst kept value are searched."""
    rows, vocabulary = values.shape
    for row in range(rows):
        for start in range(0, vocabulary, _BLOCK):
            end = min(start + _BLOCK, vocabulary)
            if _maximum(values[row, start:end]) > best[row, -1]:
                for token in range(start, end):
                    if values[row, token] > best[row, -1]:
                        _insert(tokens[row], best[row], token, values[row, token])


@compiled_freely
def _maximum(values: FloatArray) -> np.float32:
    largest = values[0]
    for value in values:
        largest = max(largest, value)
    return largest


@compiled_within
def _insert(tokens: IntArray, best: FloatArray, token: int, value: np.float32) -> None:
    """Insert a value into a sorted row. Ids arrive ascending, so equals stay in the order of their ids."""
    index = len(best) - 1
    while index > 0 and best[index - 1] < value:
        best[index] = best[index - 1]
        tokens[index] = tokens[index - 1]
        index -= 1
    best[index] = value
    tokens[index] = token


class PanelLogits(DenseLogits):
    """Logits with the maximum of every panel, which makes the best few tokens cheap to find.

    Args:
        values: Logits, in rows that are longer than the vocabulary.  # [rows, panels · 64]
        largest: Maximum of every panel of 64.  # [rows, panels]
        vocabulary_size: Number of first columns that are tokens.
        pass_rows: Number of rows of the pass that computed them; those of `values` by default.
    """

    __slots__ = ("largest",)

    def __init__(
        self, values: FloatArray, largest: FloatArray, vocabulary_size: int, pass_rows: int | None = None
    ) -> None:
        super().__init__(values, vocabulary_size, pass_rows)
        self.largest = largest

    def part(self, first: int, end: int) -> PanelLogits:
        """Return the logits of the rows from `first` up to `end`, for one of those that share a pass."""
        return PanelLogits(self.values[first:end], self.largest[first:end], self.size, self.pass_rows)

    @classmethod
    def joined(cls, parts: list[PanelLogits], order: npt.NDArray[np.int64]) -> PanelLogits:
        """Join the rows of several passes.  order: index of each wanted row among all parts' rows."""
        if len(parts) == 1 and np.array_equal(order, np.arange(len(order))):
            return parts[0]
        values = np.concatenate([part.values for part in parts])[order]
        return cls(values, np.concatenate([part.largest for part in parts])[order], parts[0].size)

    def _find(self, tokens: IntArray, best: FloatArray) -> None:
        """Find the best tokens as `DenseLogits._find` does, with the panels' maxima."""
        _top_of_panels(self.values[:, : self.size], self.largest, tokens, best)


@compiled
def _top_of_panels(values: FloatArray, largest: FloatArray, tokens: IntArray, best: FloatArray) -> None:
    """Find the best tokens; only panels whose maximum beats the worst kept value are searched."""
    rows, vocabulary = values.shape
    width = _PANEL
    for row in range(rows):
        for panel in range(largest.shape[1]):
            if largest[row, panel] > best[row, -1]:
                for token in range(panel * width, min((panel + 1) * width, vocabulary)):
                    if values[row, token] > best[row, -1]:
                        _insert(tokens[row], best[row], token, values[row, token])


@dataclass(frozen=True, slots=True)
class RowSlice:
    """A slice of consecutive rows of logits."""

    logits: Logits
    first: int
    count: int

    @property
    def pass_rows(self) -> int:
        """See `Logits`."""
        return self.logits.pass_rows

    def argmax(self) -> IntArray:
        """See `Logits`."""
        return self.logits.argmax()[self.first : self.first + self.count]

    def top(self, count: int) -> tuple[IntArray, FloatArray]:
        """See `Logits`."""
        ids, scores = self.logits.top(count)
        return ids[self.first : self.first + self.count], scores[self.first : self.first + self.count]

    def log_sum(self, index: int) -> float:
        """See `Logits`."""
        return self.logits.log_sum(self.first + index)

    def row(self, index: int) -> FloatArray:
        """See `Logits`."""
        return self.logits.row(self.first + index)


def without_first(logits: Logits, skipped: int, rows: int) -> Logits:
    """Return the logits of all but the first rows of a pass."""
    return RowSlice(logits, skipped, rows - skipped) if skipped else logits


def divergence(expected: Sequence[FloatArray], found: Sequence[FloatArray]) -> float:
    """Return the mean Kullback-Leibler divergence of predictions from expected ones, in nats.

    Args:
        expected: Logits of each prediction.  # [vocabulary] each
        found: Logits of the same predictions.  # [vocabulary] each
    """
    each = []
    for right, other in zip(expected, found, strict=True):
        log_p, log_q = _log_softmax(right), _log_softmax(other)
        each.append(float(np.sum(np.exp(log_p) * (log_p - log_q))))
    return float(np.mean(each))


def _log_softmax(logits: FloatArray) -> FloatArray:
    shifted: FloatArray = logits.astype(np.float64) - logits.max()
    return shifted - np.log(np.exp(shifted).sum())
