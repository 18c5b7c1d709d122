"""Logits in a torch tensor; only requested values leave its device."""

from __future__ import annotations

import numpy as np
import torch

from drafting.arrays import FloatArray, IntArray


class TorchLogits:
    """Logits of several rows.  # [rows, vocabulary_size]."""

    __slots__ = ("_values",)

    def __init__(self, values: torch.Tensor) -> None:
        self._values = values

    def argmax(self) -> IntArray:
        """Return the best token of each row, the lowest id among equals.  # [rows]."""
        vocabulary = self._values.shape[1]
        tokens = torch.arange(vocabulary, device=self._values.device)
        best = self._values.amax(dim=1, keepdim=True)
        lowest = torch.where(self._values == best, tokens, vocabulary).amin(dim=1)
        return lowest.cpu().numpy().astype(np.int32)

    def top(self, count: int) -> tuple[IntArray, FloatArray]:
        """Return the best `count` tokens of each row with their logits, best first.  # [rows, count] twice."""
        best, tokens = (found.cpu().numpy() for found in self._values.float().topk(count, dim=1))
        order = np.lexsort((tokens, -best), axis=-1)  # the lowest id first among equals
        return np.take_along_axis(tokens, order, 1).astype(np.int32), np.take_along_axis(best, order, 1)

    def row(self, index: int) -> FloatArray:
        """Return one row, read-only.  # [vocabulary_size]."""
        row: FloatArray = self._values[index].float().cpu().numpy()
        row.flags.writeable = False
        return row
