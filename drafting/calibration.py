"""How likely is a guess? Learned from every verified step: how often evidence of a kind was right, and whom to trust.

Each source of guesses says what kind of evidence it has for or against a token. A table counts how often tokens with
that kind of evidence were right. The tables' odds are mixed by learned weights (logistic mixing: "Adaptive Weighing of
Context Models for Lossless Data Compression"), in a set of weights chosen by how long the matches are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from drafting.arrays import FloatArray, IntArray
from drafting.compiled import compiled
from drafting.sources import prompt_lookup, token_recycling

PROMPT, WORKSPACE, PATTERN, RECYCLING = 0, 1, 2, 3
SOURCES = 4
NAMES = ("prompt_lookup", "workspace_lookup", "pattern_lookup", "token_recycling")

CLASSES = max(prompt_lookup.CLASSES, token_recycling.CLASSES)
MATCHES = prompt_lookup.LENGTH_CLASSES + 1
WEIGHT_SETS = MATCHES * MATCHES

PRIOR = 0.3
"""Chance of being right of evidence that was never seen, and …"""
PRIOR_STRENGTH = 4.0
"""… how many observations that belief is worth."""

MEMORY = 2000.0
"""Observations after which old ones fade."""

LEARNING_RATE = 0.02
MAX_LOGIT = 6.0


class CalibrationArrays(NamedTuple):
    """What was learned, as compiled code takes it.

    Attributes:
        right: Guesses with this kind of evidence that were right.  # [SOURCES, CLASSES]
        seen: All of them.  # [SOURCES, CLASSES]
        weights: How much each source's odds count, and a bias.  # [WEIGHT_SETS, SOURCES + 1]
    """

    right: FloatArray
    seen: FloatArray
    weights: FloatArray


@compiled
def logit_of(calibration: CalibrationArrays, source: int, kind: int) -> float:
    """Log odds that a guess with this kind of evidence is right."""
    right = calibration.right[source, kind] + PRIOR * PRIOR_STRENGTH
    wrong = calibration.seen[source, kind] - calibration.right[source, kind] + (1.0 - PRIOR) * PRIOR_STRENGTH
    return float(np.log(right / wrong))


@compiled
def probability(calibration: CalibrationArrays, kinds: IntArray, weight_set: int) -> float:
    """Chance that a token is the next one, from the kinds of evidence for it.  kinds: # [SOURCES]."""
    total = calibration.weights[weight_set, SOURCES]
    for source in range(SOURCES):
        if kinds[source] >= 0:
            total += calibration.weights[weight_set, source] * logit_of(calibration, source, kinds[source])
    return float(1.0 / (1.0 + np.exp(-min(max(total, -MAX_LOGIT), MAX_LOGIT))))


@compiled
def learn(calibration: CalibrationArrays, kinds: IntArray, weight_set: int, right: float) -> None:
    """One guess turned out right (1) or wrong (0): move the weights down the log loss's gradient, then count."""
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
        if calibration.seen[source, kind] > MEMORY:
            calibration.seen[source, kind] *= 0.5
            calibration.right[source, kind] *= 0.5
