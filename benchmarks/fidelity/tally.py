"""Means over tokens of how a forward pass differs from a reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Tokens = npt.NDArray[np.int32]
LogProbabilities = npt.NDArray[np.float32]  # [window, vocabulary]


@dataclass
class Tally:
    """Sums over the tokens of one language for one path."""

    tokens: int = 0
    loss: float = 0.0
    divergence: float = 0.0
    agreed: int = 0

    def add(self, window: Tokens, ours: LogProbabilities, reference: LogProbabilities) -> None:
        """Add one window: losses of its next tokens, KL(reference ‖ ours), equal argmax."""
        self.tokens += len(window) - 1
        self.loss -= float(ours[np.arange(len(window) - 1), window[1:]].sum())
        self.divergence += float((np.exp(reference) * (reference - ours))[:-1].sum())
        self.agreed += int((ours.argmax(1) == reference.argmax(1))[:-1].sum())

    def means(self) -> dict[str, float]:
        """Return the means per token."""
        count = self.tokens
        return {"nll": self.loss / count, "kl": self.divergence / count, "agreement": self.agreed / count}


def normalised(logits: npt.NDArray[np.float32]) -> LogProbabilities:
    """Return log-probabilities of logits.  # [window, vocabulary]."""
    shifted: LogProbabilities = logits - logits.max(axis=1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return shifted
