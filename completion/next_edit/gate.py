"""The gate of next edits: a logistic regression of whether a proposal is what the user does next.

`python -m benchmarks.next_edit --train` trains the weights on release replays.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

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

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> GateWeights:
        """Return the regression that a JSON object holds."""
        return cls({name: (mean, scale, weight) for name, mean, scale, weight in data["features"]}, data["bias"])

    def logit(self, features: Mapping[str, float]) -> float:
        """Return the logarithm of the odds by these features."""
        parts = (weight * (features[name] - mean) / scale for name, (mean, scale, weight) in self.weights.items())
        return max(-30.0, min(30.0, self.bias + sum(parts)))

    def probability(self, features: Mapping[str, float], bias: float = 0.0) -> float:
        """Return the probability by these features, with a further bias in logits."""
        return 1 / (1 + math.exp(-self.logit(features) - bias))


@dataclass(frozen=True, slots=True)
class Gate:
    """Two regressions: by the rules alone, and by its logit and the model's judgement."""

    rules: GateWeights
    both: GateWeights

    @classmethod
    def shipped(cls) -> Gate:
        """Return the gate that ships with draftline."""
        data = json.loads(resources.files("completion.next_edit").joinpath("gate.json").read_text(encoding="utf-8"))
        return cls(GateWeights.read(data["rules"]), GateWeights.read(data["both"]))
