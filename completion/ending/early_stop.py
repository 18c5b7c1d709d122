"""Early stop: ends an attempt that the user would hardly accept, by bounds on the mean of its log-probabilities.

Source of the idea: "When Neural Code Completion Models Size up the Situation: Attaining Cheaper and Faster Completion
through Dynamic Model Inference". `python -m benchmarks.early_stop --train` learns the bounds from one half of the open
data and prints their effect on the other half.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class EarlyStop:
    """Learned bounds.

    Attributes:
        bounds: Pairs of a number of tokens and the minimum mean log-probability, by ascending tokens. A bound applies
            from its number of tokens up to that of the next bound.
    """

    bounds: tuple[tuple[int, float], ...]

    @classmethod
    @cache
    def shipped(cls) -> EarlyStop:
        """Return the bounds that draftline ships."""
        text = resources.files("completion.ending").joinpath("early_stop.json").read_text(encoding="utf-8")
        return cls(tuple((int(tokens), float(bound)) for tokens, bound in json.loads(text)["bounds"]))

    @property
    def min_tokens(self) -> int:
        """Minimum number of tokens of an attempt that can be stopped."""
        return min((tokens for tokens, _ in self.bounds), default=0)

    def is_hopeless(self, tokens: int, log_probability: float) -> bool:
        """Return whether an attempt is hopeless: the mean of its tokens' log-probabilities is under the bound.

        The sum of them is given, in natural logarithms.
        """
        bound = next((bound for least, bound in reversed(self.bounds) if tokens >= least), None)
        return bound is not None and log_probability < bound * tokens
