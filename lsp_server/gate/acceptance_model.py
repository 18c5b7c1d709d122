"""Show or hold back: a small logistic model of whether a suggestion will be accepted, which adapts to its user.

"Size up the situation": most shown suggestions are rejected, and a third of them can be told beforehand. The weights
are made by `python -m benchmarks.gate --train`, from the study data of "Reading Between the Lines: Modeling User
Behavior and Costs in AI-Assisted Programming".
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
MOST_BIAS = 1.0
"""Bound of that bias, in logits: the gate never adapts into silence, nor into showing everything."""


class Strictness(StrEnum):
    """How much the gate holds back; the names stand in the settings."""

    OFF = "off"
    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class AcceptanceWeights:
    """A trained gate.

    Attributes:
        names: The features in order.
        means: Subtracted from each feature.  # [features]
        scales: What each is divided by then.  # [features]
        weights: In logits.  # [features]
        bias: In logits.
        learning_rate: How far one decision moves the user's own bias, in logits for a surprise of 1.
        thresholds: Probability under which nothing is shown, by strictness.
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
        """The weights that come with draftline."""
        return cls.from_json(resources.files("lsp_server.gate").joinpath("gate.json").read_text(encoding="utf-8"))

    @classmethod
    def from_json(cls, text: str) -> AcceptanceWeights:
        """Read weights.

        Raises:
            ConfigurationError: They were written for another version of the gate.
        """
        data = json.loads(text)
        if data.get("version") != VERSION:
            raise ConfigurationError(
                f"The gate's weights have version {data.get('version')}, this gate reads {VERSION}. "
                "Train them again with `python -m benchmarks.gate --train`."
            )
        columns = zip(*data["features"], strict=True)
        names, means, scales, weights = columns
        return cls(names, means, scales, weights, data["bias"], data["learning_rate"], data["thresholds"])

    def to_json(self) -> str:
        """What `from_json` reads, a feature a line."""
        rows = zip(self.names, self.means, self.scales, self.weights, strict=True)
        lines = ",\n    ".join(json.dumps([name, *(round(value, 5) for value in row)]) for name, *row in rows)
        thresholds = json.dumps(self.thresholds)
        return (
            f'{{\n  "version": {VERSION},\n  "bias": {round(self.bias, 5)},\n'
            f'  "learning_rate": {self.learning_rate},\n  "thresholds": {thresholds},\n'
            f'  "features": [\n    {lines}\n  ]\n}}\n'
        )


class AcceptanceModel:
    """Decides for one user, and learns from what became of what was shown.

    Args:
        weights: A trained gate.
        user_bias: What was learned of this user before, in logits.
    """

    def __init__(self, weights: AcceptanceWeights, user_bias: float = 0.0) -> None:
        self._weights = weights
        self.user_bias = max(-MOST_BIAS, min(MOST_BIAS, user_bias))
        self.behaviour = Behaviour()

    def probability(self, offer: Offer) -> float:
        """How likely the user accepts the offer, from 0 to 1."""
        logit = self._weights.bias + self.user_bias
        values = features(offer, self.behaviour)
        for name, mean, scale, weight in zip(
            self._weights.names, self._weights.means, self._weights.scales, self._weights.weights, strict=True
        ):
            logit += weight * (values[name] - mean) / scale
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, logit))))

    def shows(self, offer: Offer, strictness: Strictness, *, invoked: bool = False) -> bool:
        """Whether the offer is to be shown; what the user asked for by a key always is."""
        if invoked or strictness is Strictness.OFF:
            return True
        return self.probability(offer) >= self._weights.thresholds[strictness.value]

    def learn(self, offer: Offer, *, accepted: bool, at_s: float) -> None:
        """Take in what became of a shown offer: the user's bias moves a little, within its bound."""
        surprise = float(accepted) - self.probability(offer)
        self.user_bias = max(-MOST_BIAS, min(MOST_BIAS, self.user_bias + self._weights.learning_rate * surprise))
        self.behaviour.decided(offer, accepted=accepted, at_s=at_s)
