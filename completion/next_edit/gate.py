"""The gate of next edits: a logistic regression of whether a proposal is what the user does next.

`python -m benchmarks.next_edit --train` trains the weights on release replays.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

JUDGED_FROM = 0.08
"""Probability by the rules alone from which the model judges a proposal; most of the less likely ones are wrong."""
SURE_FROM = 0.5
"""Probability by the rules alone from which a proposal is shown at once: the model would show almost the same."""
SHOWN_FROM = 0.35
"""Probability from which a proposal is shown; `python -m benchmarks.next_edit` prints what other ones would give."""
INVOKED_FROM = 0.15
"""Probability from which the likeliest edit is shown for a manual request: the user looks, and most of the less likely
ones are absurd."""


@dataclass(frozen=True, slots=True)
class GateWeights:
    """A trained logistic regression.

    Attributes:
        weights: Mean, scale and weight of each feature by its name; the weight is in logits, as the bias is.
    """

    weights: Mapping[str, tuple[float, float, float]]
    bias: float

    def logit(self, features: Mapping[str, float]) -> float:
        """Return the logarithm of the odds that the proposal is right."""
        parts = (weight * (features[name] - mean) / scale for name, (mean, scale, weight) in self.weights.items())
        return max(-30.0, min(30.0, self.bias + sum(parts)))

    def probability(self, features: Mapping[str, float]) -> float:
        """Return the probability that the proposal is right."""
        return 1 / (1 + math.exp(-self.logit(features)))


@dataclass(frozen=True, slots=True)
class Gate:
    """Two regressions: by the rules alone, and by its logit and the model's judgement."""

    rules: GateWeights
    both: GateWeights

    @classmethod
    def shipped(cls) -> Gate:
        """Return the gate that ships with draftline."""
        text = resources.files("completion.next_edit").joinpath("gate.json").read_text(encoding="utf-8")
        data = json.loads(text)
        rules, both = (
            GateWeights({name: tuple(values) for name, *values in part["features"]}, part["bias"])
            for part in (data["rules"], data["both"])
        )
        return cls(rules, both)
