"""Logits in host memory: the best token, the best few tokens, whole rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from completion.model.causal_model import Logits
from drafting.arrays import FloatArray, IntArray
from drafting.compiled import compiled, compiled_within

_PANEL = 64
"""Number of logits whose maximum is compared at once with the worst kept one; see `kernels.int8_product`."""
_MIN_KEPT = 8
"""Minimum number of best tokens that one pass finds: most callers want a few more than the best."""


class DenseLogits:
    """Logits as one array. The maximum of every panel makes the best few tokens cheap to find.

    Args:
        values: Logits; a row may be longer than the vocabulary.  # [rows, ≥ vocabulary_size]
        vocabulary_size: Number of first columns that are tokens; all by default.
        pass_rows: Number of rows of the pass that computed them; those of `values` by default.
        largest: Maximum of every panel of 64, if the pass has found it.  # [rows, panels]
    """

    __slots__ = ("_best", "_tokens", "largest", "pass_rows", "size", "values")

    def __init__(
        self,
        values: FloatArray,
        vocabulary_size: int | None = None,
        pass_rows: int | None = None,
        largest: FloatArray | None = None,
    ) -> None:
        self.values = values
        self.pass_rows = len(values) if pass_rows is None else pass_rows
        self.size = values.shape[1] if vocabulary_size is None else vocabulary_size
        panels = np.arange(0, self.size, _PANEL)
        self.largest = np.maximum.reduceat(values[:, : self.size], panels, axis=1) if largest is None else largest
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
            _top(self.values[:, : self.size], self.largest, self._tokens, self._best)
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

    @classmethod
    def joined(cls, parts: list[DenseLogits], order: npt.NDArray[np.int64]) -> DenseLogits:
        """Join the rows of several passes.  order: index of each wanted row among all parts' rows."""
        if len(parts) == 1 and np.array_equal(order, np.arange(len(order))):
            return parts[0]
        values = np.concatenate([part.values for part in parts])[order]
        return cls(values, parts[0].size, largest=np.concatenate([part.largest for part in parts])[order])


@compiled
def _top(values: FloatArray, largest: FloatArray, tokens: IntArray, best: FloatArray) -> None:
    """Find the best tokens of each row; only panels whose maximum beats the worst kept value are searched.

    values: # [rows, vocabulary]; largest: # [rows, panels]; tokens, and best, which is −∞ at first: # [rows, kept]
    """
    rows, vocabulary = values.shape
    for row in range(rows):
        for panel in range(largest.shape[1]):
            if largest[row, panel] > best[row, -1]:
                for token in range(panel * _PANEL, min((panel + 1) * _PANEL, vocabulary)):
                    if values[row, token] > best[row, -1]:
                        _insert(tokens[row], best[row], token, values[row, token])


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
    """Return the mean Kullback-Leibler divergence of predictions from expected ones, in nats.  # [vocabulary] each."""
    each = []
    for right, other in zip(expected, found, strict=True):
        log_p, log_q = _log_softmax(right), _log_softmax(other)
        each.append(float(np.sum(np.exp(log_p) * (log_p - log_q))))
    return float(np.mean(each))


def _log_softmax(logits: FloatArray) -> FloatArray:
    shifted: FloatArray = logits.astype(np.float64) - logits.max()
    return shifted - np.log(np.exp(shifted).sum())
