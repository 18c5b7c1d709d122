"""Stops a continuation that has become hopeless: the running mean of its log-probabilities fell under a learned bound.

"Size up the situation": most of what will be rejected can be told from its first tokens. The bounds are made by
`python -m benchmarks.early_stop --train`, from one half of the open data, and its effect is printed on the other.
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
        bounds: (tokens, lowest mean log-probability that is not hopeless yet), by ascending tokens. A bound counts
            from its number of tokens up to the next one's.
    """

    bounds: tuple[tuple[int, float], ...]

    @classmethod
    @cache
    def shipped(cls) -> EarlyStop:
        """The bounds that come with draftline."""
        return cls.from_json(
            resources.files("completion.stopping").joinpath("early_stop.json").read_text(encoding="utf-8")
        )

    @classmethod
    def from_json(cls, text: str) -> EarlyStop:
        """Read what `to_json` wrote."""
        return cls(tuple((int(tokens), float(bound)) for tokens, bound in json.loads(text)["bounds"]))

    def to_json(self) -> str:
        """The bounds as a small file."""
        return json.dumps({"version": 1, "bounds": self.bounds}) + "\n"

    @property
    def least_tokens(self) -> int:
        """Shorter texts are never hopeless."""
        return min((tokens for tokens, _ in self.bounds), default=0)

    def hopeless(self, tokens: int, log_probability: float) -> bool:
        """Whether to stop here.

        Args:
            tokens: How many tokens were generated so far.
            log_probability: Sum over them, natural logarithm.
        """
        bound = next((bound for least, bound in reversed(self.bounds) if tokens >= least), None)
        return bound is not None and log_probability < bound * tokens
