"""The acceptance model: a logistic regression of whether the user will accept a suggestion, which adapts to the user.

The gate hides a suggestion whose probability is below a threshold. `python -m benchmarks.gate --train` trains the
weights on the study data of "Reading Between the Lines: Modeling User Behavior and Costs in AI-Assisted Programming".
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources

from completion.errors import ConfigurationError
from lsp_server.gate.features import Behaviour, Offer, features

VERSION = 2
MAX_BIAS = 1.0
"""Maximum magnitude of the user's bias, in logits. It keeps the gate from learning to hide or to show everything."""


class Strictness(StrEnum):
    """How many suggestions are hidden; the values are those of the setting `gate`.

    A share does not use the acceptance model: `lsp_server.gate.worth` keeps its promise.
    """

    OFF = "off"
    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"
    RIGHT_50 = "0.5"
    RIGHT_60 = "0.6"
    RIGHT_70 = "0.7"
    RIGHT_80 = "0.8"


@dataclass(frozen=True, slots=True)
class AcceptanceWeights:
    """The parameters of a trained acceptance model.

    Attributes:
        names: Names of the features.  # [features]
        means: Value subtracted from each feature.  # [features]
        scales: Divisor of each feature after that.  # [features]
        weights: Weight of each feature, in logits.  # [features]
        bias: Bias, in logits.
        learning_rate: Change of the user's bias by one decision, in logits for an error of 1.
        thresholds: Probability below which a suggestion is hidden, by strictness.
    """

    names: tuple[str, ...]
    means: tuple[float, ...]
    scales: tuple[float, ...]
    weights: tuple[float, ...]
    bias: float
    learning_rate: float
    thresholds: dict[str, float]

    @classmethod
    def shipped(cls) -> AcceptanceWeights:
        """Return the weights that ship with draftline."""
        return cls.from_json(resources.files("lsp_server.gate").joinpath("gate.json").read_text(encoding="utf-8"))

    @classmethod
    def from_json(cls, text: str) -> AcceptanceWeights:
        """Parse weights.

        Raises:
            ConfigurationError: The weights have another version.
        """
        data = json.loads(text)
        if data.get("version") != VERSION:
            raise ConfigurationError(
                f"The gate's weights have version {data.get('version')} instead of {VERSION}. "
                "Train them again: python -m benchmarks.gate --train"
            )
        columns = zip(*data["features"], strict=True)
        names, means, scales, weights = columns
        return cls(names, means, scales, weights, data["bias"], data["learning_rate"], data["thresholds"])

    def to_json(self) -> str:
        """Return the weights as JSON for `from_json`, with one feature per line."""
        rows = zip(self.names, self.means, self.scales, self.weights, strict=True)
        lines = ",\n    ".join(json.dumps([name, *(round(value, 5) for value in row)]) for name, *row in rows)
        thresholds = json.dumps(self.thresholds)
        return (
            f'{{\n  "version": {VERSION},\n  "bias": {round(self.bias, 5)},\n'
            f'  "learning_rate": {self.learning_rate},\n  "thresholds": {thresholds},\n'
            f'  "features": [\n    {lines}\n  ]\n}}\n'
        )


class AcceptanceModel:
    """The acceptance model of one user, which learns from the user's decisions.

    Attributes:
        user_bias: What is added to the weights' bias for this user, in logits.
    """

    def __init__(self, weights: AcceptanceWeights) -> None:
        self._weights = weights
        self.user_bias = 0.0
        self.behaviour = Behaviour()

    def probability(self, offer: Offer) -> float:
        """Return the probability that the user accepts the offer."""
        logit = self._weights.bias + self.user_bias
        values = features(offer, self.behaviour)
        for name, mean, scale, weight in zip(
            self._weights.names, self._weights.means, self._weights.scales, self._weights.weights, strict=True
        ):
            logit += weight * (values[name] - mean) / scale
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, logit))))

    def shows(self, offer: Offer, strictness: Strictness) -> bool:
        """Return whether to show the offer."""
        return self.probability(offer) >= self._weights.thresholds.get(strictness.value, 0.0)

    def learn(self, offer: Offer, *, accepted: bool, at_s: float) -> None:
        """Learn from the user's decision on a shown offer: adjust the user's bias and remember the behaviour."""
        error = float(accepted) - self.probability(offer)
        self.user_bias = max(-MAX_BIAS, min(MAX_BIAS, self.user_bias + self._weights.learning_rate * error))
        self.behaviour.decided(offer, accepted=accepted, at_s=at_s)
