"""Calibrated probability that a drafted token is right, learned from every verified step.

Each source reports a kind of evidence for or against a token. A table counts how often tokens with that kind of
evidence were right. Learned weights mix the sources' log odds (logistic mixing: "Adaptive Weighing of Context Models
for Lossless Data Compression"). The longest matches in the prompt and in the workspace select the set of weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from drafting.arrays import FloatArray, IntArray
from drafting.compiled import compiled, compiled_within
from drafting.sources import prompt_lookup, token_recycling

PROMPT, WORKSPACE, PATTERN, RECYCLING = 0, 1, 2, 3
SOURCES = 4
NAMES = ("prompt_lookup", "workspace_lookup", "pattern_lookup", "token_recycling")

CLASSES = max(prompt_lookup.CLASSES, token_recycling.CLASSES)
"""Kinds of evidence that the tables have room for: as many as the source with the most kinds has."""
MATCHES = prompt_lookup.LENGTH_CLASSES + 1
"""Classes of the longest match of a lookup, "no match" included."""
WEIGHT_SETS = MATCHES * MATCHES

PRIOR = 0.3
"""Probability that a token is right whose kind of evidence was never observed."""
PRIOR_STRENGTH = 4.0
"""Number of observations that `PRIOR` counts for."""

MAX_OBSERVATIONS = 2000.0
"""Observations of one kind of evidence; above this number its counts are halved, so that old ones fade."""

LEARNING_RATE = 0.02
"""Step size of the gradient descent on the mixing weights."""
MAX_LOGIT = 6.0
"""Maximum absolute log odds of a prediction."""


class CalibrationArrays(NamedTuple):
    """Learned counts and weights, in the form that compiled code takes.

    Attributes:
        right: Candidates with this kind of evidence that were right.  # [SOURCES, CLASSES]
        seen: All verified candidates with this kind of evidence.  # [SOURCES, CLASSES]
        weights: Weight of each source's log odds, then a bias.  # [WEIGHT_SETS, SOURCES + 1]
    """

    right: FloatArray
    seen: FloatArray
    weights: FloatArray


@compiled_within
def logit_of(calibration: CalibrationArrays, source: int, kind: int) -> float:
    """Return the log odds that a token with this kind of evidence is right."""
    right = calibration.right[source, kind] + PRIOR * PRIOR_STRENGTH
    wrong = calibration.seen[source, kind] - calibration.right[source, kind] + (1.0 - PRIOR) * PRIOR_STRENGTH
    return float(np.log(right / wrong))


@compiled
def probability(calibration: CalibrationArrays, kinds: IntArray, weight_set: int) -> float:
    """Return the probability that a token comes next.

    `kinds` has the kind of evidence of each source, −1 for none.  # [SOURCES]
    """
    total = calibration.weights[weight_set, SOURCES]
    for source in range(SOURCES):
        if kinds[source] >= 0:
            total += calibration.weights[weight_set, source] * logit_of(calibration, source, kinds[source])
    return float(1.0 / (1.0 + np.exp(-min(max(total, -MAX_LOGIT), MAX_LOGIT))))


@compiled
def learn(calibration: CalibrationArrays, kinds: IntArray, weight_set: int, right: float) -> None:
    """Learn from one verified candidate: move the weights down the gradient of the log loss, then count.

    `kinds` and `weight_set` are those of `probability`; `right` is 1 if the token was right, else 0.
    """
    error = right - probability(calibration, kinds, weight_set)
    calibration.weights[weight_set, SOURCES] += LEARNING_RATE * error
    for source in range(SOURCES):
        kind = kinds[source]
        if kind < 0:
            continue
        step = LEARNING_RATE * error * logit_of(calibration, source, kind)
        calibration.weights[weight_set, source] += step
        calibration.seen[source, kind] += 1.0
        calibration.right[source, kind] += right
        if calibration.seen[source, kind] > MAX_OBSERVATIONS:
            calibration.seen[source, kind] *= 0.5
            calibration.right[source, kind] *= 0.5
