"""Logits in a torch tensor; only requested values leave its device, the best tokens of all rows in one copy."""

from __future__ import annotations

import numpy as np
import torch

from drafting.arrays import FloatArray, IntArray

_MIN_KEPT = 8
"""Minimum number of best tokens of a row that are copied at once: most callers want a few more than the best."""


def best_tokens(values: torch.Tensor, count: int = _MIN_KEPT) -> torch.Tensor:
    """Return of each row the lowest best token, log Σ exp, the best tokens and their logits, for one copy.

    Token ids are exact in float32.

    # [rows, vocabulary] → # float32 [rows, 2 + 2 · count]
    """
    wide, vocabulary = values.float(), values.shape[1]
    ids = torch.arange(vocabulary, device=values.device)
    lowest = torch.where(wide == wide.amax(dim=1, keepdim=True), ids, vocabulary).amin(dim=1, keepdim=True)
    best, tokens = wide.topk(min(count, vocabulary), dim=1)
    return torch.cat((lowest.float(), wide.logsumexp(dim=1, keepdim=True), tokens.float(), best), dim=1)


class TorchLogits:
    """Logits of several rows, and their `best_tokens` if a graph has found them.  values: # [rows, vocabulary_size]."""

    __slots__ = ("_best", "_found", "_log_sums", "_lowest", "_rows", "_tokens", "_values")

    def __init__(self, values: torch.Tensor, best: torch.Tensor | None = None) -> None:
        self._values, self._found = values, best
        self._lowest = np.zeros(0, dtype=np.int32)  # best token of each row
        self._log_sums = np.zeros(0, dtype=np.float32)
        self._tokens = np.zeros((len(values), 0), dtype=np.int32)
        self._best = np.zeros((len(values), 0), dtype=np.float32)
        self._rows: dict[int, FloatArray] = {}

    @property
    def pass_rows(self) -> int:
        """See `Logits`."""
        return len(self._values)

    def argmax(self) -> IntArray:
        """Return the best token of each row, the lowest id among equals.  # [rows]."""
        self._keep(1)
        return self._lowest

    def top(self, count: int) -> tuple[IntArray, FloatArray]:
        """Return the best `count` tokens of each row with their logits, best first.  # [rows, count] twice."""
        self._keep(count)
        return self._tokens[:, :count], self._best[:, :count]

    def log_sum(self, index: int) -> float:
        """Return log Σ exp of one row."""
        self._keep(1)
        return float(self._log_sums[index])

    def row(self, index: int) -> FloatArray:
        """Return one row, read-only.  # [vocabulary_size]."""
        if index not in self._rows:
            row: FloatArray = self._values[index].float().cpu().numpy()
            row.flags.writeable = False
            self._rows[index] = row
        return self._rows[index]

    def _keep(self, count: int) -> None:
        """Copy the best tokens of each row and the sums at once."""
        if self._tokens.shape[1] >= count:
            return
        if self._found is None or count > _MIN_KEPT:
            self._found = best_tokens(self._values, max(count, _MIN_KEPT))
        copied = self._found.cpu().numpy()
        found, values = np.split(copied[:, 2:], 2, axis=1)
        order = np.lexsort((found, -values), axis=-1)  # the lowest id first among equals
        self._lowest, self._log_sums = copied[:, 0].astype(np.int32), copied[:, 1]
        self._tokens = np.take_along_axis(found, order, 1).astype(np.int32)
        self._best = np.take_along_axis(values, order, 1)
