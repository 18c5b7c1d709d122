"""Training of the gate of next edits on labelled proposals, by ridge logistic regression."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.gate.training import regression
from benchmarks.next_edit.replay import Outcome, State
from completion.next_edit.gate import Gate, GateWeights
from completion.next_edit.judge import Judgement
from completion.next_edit.proposals import Proposal, judged_features

PENALTY = 3.0
"""Penalty of squared weights."""
FOLDS = 5
"""Number of parts of the packages of one half, to choose a threshold by packages outside the gate's training."""


@dataclass(slots=True)
class Row:
    """A proposal with its outcome.

    Attributes:
        state: The file when it was proposed.
        is_first: Whether no earlier state of the file had the same proposal.
        judgement: The model's, None if it did not judge.
    """

    state: State
    proposal: Proposal
    outcome: Outcome
    is_first: bool
    judgement: Judgement | None = None

    @property
    def is_right(self) -> float:
        """1 if a later change makes it, 0 otherwise."""
        return float(self.outcome is Outcome.EXACT)


Features = Callable[[Row], dict[str, float]]
"""Returns the features of a row by name."""


def half(row: Row) -> int:
    """Return the half of the data, 0 or 1, that a row's package belongs to."""
    return hashlib.sha256(row.state.package.encode()).digest()[0] % 2


def folds(rows: Sequence[Row]) -> Iterator[tuple[list[Row], list[Row]]]:
    """Yield the rows for training and those for testing, by package, so that each row is tested once."""
    numbers = [hashlib.sha256(row.state.package.encode()).digest()[1] % FOLDS for row in rows]
    for fold in range(FOLDS):
        parts: tuple[list[Row], list[Row]] = ([], [])
        for row, number in zip(rows, numbers, strict=True):
            parts[number == fold].append(row)
        if all(parts):
            yield parts


def train_gate(rows: Sequence[Row]) -> Gate:
    """Return both regressions of a gate; without judgements, the second one repeats the first."""
    rules = fit(rows, lambda row: row.proposal.rule_features())
    judged = [row for row in rows if row.judgement]
    both = fit(judged, judged_by(rules)) if judged else GateWeights({"rules": (0.0, 1.0, 1.0)}, 0.0)
    return Gate(rules, both)


def judged_by(rules: GateWeights) -> Features:
    """Return the features of judged rows by the logits of a regression on the rules."""

    def features(row: Row) -> dict[str, float]:
        assert row.judgement is not None
        return judged_features(rules.logit(row.proposal.rule_features()), row.judgement)

    return features


def fit(rows: Sequence[Row], features: Features) -> GateWeights:
    """Return the ridge logistic regression on the features; each proposal of a file counts once."""
    rows = [row for row in rows if row.is_first]
    found = [features(row) for row in rows]
    names = tuple(found[0])
    inputs = np.array([[each[name] for name in names] for each in found])
    return regression(names, inputs, np.array([row.is_right for row in rows]), PENALTY, 1e-2)


def to_json(gate: Gate) -> str:
    """Return a gate as the JSON that `Gate.shipped` reads, with one feature per line."""
    return "{\n" + ",\n".join(f'  "{key}": {_json(getattr(gate, key))}' for key in ("rules", "both")) + "\n}\n"


def _json(part: GateWeights) -> str:
    rows = (json.dumps([name, *(round(value, 4) for value in values)]) for name, values in part.weights.items())
    features = ",\n      ".join(rows)
    return f'{{\n    "bias": {round(part.bias, 4)},\n    "features": [\n      {features}\n    ]\n  }}'
