"""Calibrated probability that a drafted token is right, learned from every verified step.

Each source reports a kind of evidence for or against a token. A table counts how often tokens with that kind of
evidence were right. Learned weights mix the sources' log odds (logistic mixing: "Adaptive Weighing of Context Models
for Lossless Data Compression"). The longest matches in the prompt and in the workspace select the set of weights.

What was learned is in one file a model: counts of kinds of evidence, never a token.
"""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np

from drafting.arrays import FloatArray, IntArray
from drafting.compiled import compiled, compiled_within
from drafting.sources import prompt_lookup, token_recycling
from drafting.state_files import StateFileError, read_state, write_state

FORMAT = "draftline-calibration-1"
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


def load_calibration(path: Path, digest: str) -> CalibrationArrays:
    """Read the calibration that was saved for a model of this digest; the default one if there is no usable file."""
    found = read_state(path, lambda data: _decoded(data, digest))
    return default_calibration() if found is None else found


def save_calibration(calibration: CalibrationArrays, path: Path, digest: str) -> None:
    """Write the calibration of a model to a file, completely or not at all.

    Raises:
        OSError: The folder cannot be written, or the disk is full; the old file is unchanged.
    """
    arrays = {name: array.tolist() for name, array in calibration._asdict().items()}
    write_state(path, json.dumps({"format": FORMAT, "model": digest, **arrays}).encode())


def _decoded(data: bytes, digest: str) -> CalibrationArrays:
    table = json.loads(data)
    if not isinstance(table, dict) or table.get("format") != FORMAT:
        raise StateFileError("it is no calibration of this version")
    if table.get("model") != digest:
        raise StateFileError("it belongs to another model")
    return _checked(_arrays_of(table))


def _arrays_of(table: dict[str, list[list[float]]]) -> CalibrationArrays:
    return CalibrationArrays(*(np.array(table[name], dtype=np.float32) for name in CalibrationArrays._fields))


def _checked(arrays: CalibrationArrays) -> CalibrationArrays:
    """Check the arrays and return them.

    Raises:
        StateFileError: A shape is wrong, a number is not finite, or more guesses were right than were seen.
    """
    shapes = ((SOURCES, CLASSES), (SOURCES, CLASSES), (WEIGHT_SETS, SOURCES + 1))
    for name, array, shape in zip(arrays._fields, arrays, shapes, strict=True):
        if array.shape != shape or not np.all(np.isfinite(array)):
            raise StateFileError(f"{name} has shape {array.shape}, expected {shape} of finite numbers")
    if np.any(arrays.right < 0) or np.any(arrays.right > arrays.seen):
        raise StateFileError("more guesses were right than were seen")
    return arrays


def default_calibration() -> CalibrationArrays:
    """Return the calibration measured with the default model on packages' source files, where learning starts."""
    with (resources.files("drafting") / "data" / "calibration.json").open() as file:
        return _arrays_of(json.load(file))
