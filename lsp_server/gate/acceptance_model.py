"""The acceptance model: a logistic regression of whether the user will accept a suggestion, which adapts to the user.

The gate hides a suggestion whose probability is below a threshold. `python -m benchmarks.gate --train` trains the
weights on the study data of "Reading Between the Lines: Modeling User Behavior and Costs in AI-Assisted Programming".
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources

from completion.next_edit.gate import GateWeights
from lsp_server.gate.features import Behaviour, Offer, features

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
        regression: Regression of whether any user accepts an offer.
        learning_rate: Change of the user's bias by one decision, in logits for an error of 1.
        thresholds: Probability below which a suggestion is hidden, by strictness.
    """

    regression: GateWeights
    learning_rate: float
    thresholds: dict[str, float]

    @classmethod
    def shipped(cls) -> AcceptanceWeights:
        """Return the weights that ship with draftline."""
        data = json.loads(resources.files("lsp_server.gate").joinpath("gate.json").read_text(encoding="utf-8"))
        return cls(GateWeights.read(data), data["learning_rate"], data["thresholds"])


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
        return self._weights.regression.probability(features(offer, self.behaviour), self.user_bias)

    def shows(self, offer: Offer, strictness: Strictness) -> bool:
        """Return whether to show the offer."""
        return self.probability(offer) >= self._weights.thresholds.get(strictness.value, 0.0)

    def learn(self, offer: Offer, *, accepted: bool, at_s: float) -> None:
        """Learn from the user's decision on a shown offer: adjust the user's bias and remember the behaviour."""
        error = float(accepted) - self.probability(offer)
        self.user_bias = max(-MAX_BIAS, min(MAX_BIAS, self.user_bias + self._weights.learning_rate * error))
        self.behaviour.decided(offer, at_s=at_s)
