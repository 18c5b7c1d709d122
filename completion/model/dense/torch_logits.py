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

    __slots__ = ("_copied", "_found", "_rows", "_values")

    def __init__(self, values: torch.Tensor, best: torch.Tensor | None = None) -> None:
        self._values, self._found = values, best
        self._copied = np.zeros((len(values), 0), dtype=np.float32)  # as `best_tokens`
        self._rows: dict[int, FloatArray] = {}

    @property
    def pass_rows(self) -> int:
        """See `Logits`."""
        return len(self._values)

    def argmax(self) -> IntArray:
        """Return the best token of each row, the lowest id among equals.  # [rows]."""
        return self._best(1)[:, 0].astype(np.int32)

    def top(self, count: int) -> tuple[IntArray, FloatArray]:
        """Return the best `count` tokens of each row with their logits, best first.  # [rows, count] twice."""
        tokens, values = np.split(self._best(count)[:, 2:], 2, axis=1)
        return tokens[:, :count].astype(np.int32), values[:, :count]

    def log_sum(self, index: int) -> float:
        """Return log Σ exp of one row."""
        return float(self._best(1)[index, 1])

    def row(self, index: int) -> FloatArray:
        """Return one row, read-only.  # [vocabulary_size]."""
        if index not in self._rows:
            row: FloatArray = self._values[index].float().cpu().numpy()
            row.flags.writeable = False
            self._rows[index] = row
        return self._rows[index]

    def _best(self, count: int) -> FloatArray:
        """Return `best_tokens` of all rows, copied and sorted once, with at least `count` tokens."""
        if self._copied.shape[1] < 2 + 2 * min(count, self._values.shape[1]):
            if self._found is None or count > _MIN_KEPT:
                self._found = best_tokens(self._values, max(count, _MIN_KEPT))
            sums, tokens, values = np.split(self._found.cpu().numpy(), [2, 1 + self._found.shape[1] // 2], axis=1)
            order = np.lexsort((tokens, -values), axis=-1)  # the lowest id first among equals
            self._copied = np.hstack((sums, *(np.take_along_axis(each, order, 1) for each in (tokens, values))))
        return self._copied
