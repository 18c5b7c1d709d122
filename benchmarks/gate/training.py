"""Training of the gate on the sessions of a study, by ridge logistic regression.

The groups of features and the penalty are chosen by cross-validation over users.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from completion.next_edit.gate import GateWeights
from lsp_server.gate.acceptance_model import MAX_BIAS, AcceptanceWeights
from lsp_server.gate.features import Behaviour, Offer, grouped_features

PENALTIES = (50.0, 100.0, 200.0, 400.0, 800.0)
"""Candidate penalties of squared weights."""
LEARNING_RATES = (0.0, 0.05, 0.1, 0.2)
"""Candidate learning rates: how far one decision may move the bias of a user."""
FIRST_PENALTY, FIRST_LEARNING_RATE = 200.0, 0.1
"""Penalty and learning rate with which the groups of features are chosen."""
FOLDS = 5
"""Number of parts that the users of the training data are divided into."""

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Event:
    """One suggestion that the study showed. `accepted` is None where no decision was recorded."""

    offer: Offer
    accepted: bool | None
    decided_s: float


@dataclass(frozen=True, slots=True)
class User:
    """One programmer of the study.

    Attributes:
        events: Events in order.
        inputs: Features of the decided events, each from the state before it.  # [decided, features]
        outcomes: 1 for accepted, 0 for rejected.  # [decided]
        groups: Names of the features by group, in the order of the columns.
    """

    events: tuple[Event, ...]
    inputs: Array
    outcomes: Array
    groups: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Choice:
    """Choices of the training: groups of features, the penalty of squared weights, the learning rate for a user."""

    groups: tuple[str, ...]
    penalty: float = FIRST_PENALTY
    learning_rate: float = FIRST_LEARNING_RATE


def read_users(records: list[dict[str, Any]]) -> list[User]:
    """Return the events of the study by user, without users of whom no decision is known."""
    found: dict[int, list[Event]] = defaultdict(list)
    for record in sorted(records, key=lambda r: (r["user_id"], r["event"])):
        at_s = _seconds(record["timestamp"])
        measured = record["features"]
        offer = Offer(
            text=record["suggestion"],
            prefix=record["prompt"],
            suffix_length=max(0, measured["documentLength"] - measured["promptEndPos"]),
            tokens=measured["numTokens"],
            mean_log_probability=measured.get("meanLogProb"),
            at_s=at_s,
        )
        decided = record["decision_timestamp"]
        found[record["user_id"]].append(Event(offer, record["accepted"], _seconds(decided) if decided else at_s))
    decided = [events for events in found.values() if any(event.accepted is not None for event in events)]
    return [_user(events) for events in decided]


def train(users: Sequence[User], choice: Choice) -> AcceptanceWeights:
    """Return weights that are trained on these users, without thresholds."""
    inputs = np.concatenate([user.inputs[:, _columns(user, choice)] for user in users])
    outcomes = np.concatenate([user.outcomes for user in users])
    names = [name for group in choice.groups for name in users[0].groups[group]]
    return AcceptanceWeights(regression(names, inputs, outcomes, choice.penalty, 1e-3), choice.learning_rate, {})


def regression(names: Sequence[str], inputs: Array, outcomes: Array, penalty: float, added_scale: float) -> GateWeights:
    """Return the ridge logistic regression of outcomes on named features, by Newton's method.

    Args:
        names: Names of the features.  # [features]
        inputs: Features of each case.  # [cases, features]
        outcomes: 1 for what is to be predicted, 0 otherwise.  # [cases]
        penalty: Penalty of squared weights.
        added_scale: What is added to each scale, so that no feature is divided by zero.
    """
    means, scales = inputs.mean(0), inputs.std(0) + added_scale
    bias, *weights = newton((inputs - means) / scales, outcomes, penalty).tolist()
    columns = zip(names, means.tolist(), scales.tolist(), weights, strict=True)
    return GateWeights({name: (mean, scale, weight) for name, mean, scale, weight in columns}, bias)


def to_json(weights: AcceptanceWeights) -> str:
    """Return weights as the JSON that `AcceptanceWeights.shipped` reads, with one feature per line."""
    rows = weights.regression.weights.items()
    lines = ",\n    ".join(json.dumps([name, *(round(value, 5) for value in values)]) for name, values in rows)
    return (
        f'{{\n  "bias": {round(weights.regression.bias, 5)},\n  "learning_rate": {weights.learning_rate},\n'
        f'  "thresholds": {json.dumps(weights.thresholds)},\n  "features": [\n    {lines}\n  ]\n}}\n'
    )


def replay(model: AcceptanceWeights, user: User, choice: Choice) -> Array:
    """Return the probability before each decision of a gate that adapts as `AcceptanceModel` does.  # [decided]."""
    means, scales, weights = np.array([*model.regression.weights.values()]).T
    logits = (user.inputs[:, _columns(user, choice)] - means) / scales @ weights + model.regression.bias
    probabilities, user_bias = np.empty(len(logits)), 0.0
    for number, (logit, outcome) in enumerate(zip(logits.tolist(), user.outcomes.tolist(), strict=True)):
        probability = float(1 / (1 + np.exp(-np.clip(logit + user_bias, -30, 30))))
        probabilities[number] = probability
        moved = user_bias + choice.learning_rate * (outcome - probability)
        user_bias = max(-MAX_BIAS, min(MAX_BIAS, moved))
    return probabilities


def choose(users: Sequence[User]) -> Choice:
    """Return the choice with the least loss in cross-validation over these users.

    Groups of features are added one by one, the most useful first, while the loss falls. Then the penalty is chosen,
    then the learning rate.
    """
    best = Choice(())
    least = float("inf")
    while left := [group for group in users[0].groups if group not in best.groups]:
        tried = [(_loss(users, one), one) for one in (replace(best, groups=_with(users[0], best, add)) for add in left)]
        loss, choice = min(tried, key=lambda pair: pair[0])
        if loss >= least:
            break
        least, best = loss, choice
    loss_of = partial(_loss, users)
    best = min((replace(best, penalty=penalty) for penalty in PENALTIES), key=loss_of)
    best = min((replace(best, learning_rate=rate) for rate in LEARNING_RATES), key=loss_of)
    return best


def left_out_by_parts(users: Sequence[User], choice: Choice) -> tuple[Array, Array]:
    """Return probabilities and outcomes of users with gates trained on the other parts.  # 2 × [decided]."""
    found = []
    for part in range(FOLDS):
        model = train([user for number, user in enumerate(users) if number % FOLDS != part], choice)
        found += [(replay(model, user, choice), user.outcomes) for user in users[part::FOLDS]]
    return np.concatenate([pair[0] for pair in found]), np.concatenate([pair[1] for pair in found])


def _loss(users: Sequence[User], choice: Choice) -> float:
    """Return the mean negative log-likelihood."""
    probabilities, outcomes = left_out_by_parts(users, choice)
    return float(-np.log(np.where(outcomes == 1, probabilities, 1 - probabilities)).mean())


def _with(user: User, choice: Choice, group: str) -> tuple[str, ...]:
    return tuple(name for name in user.groups if name in choice.groups or name == group)


def _user(events: list[Event]) -> User:
    behaviour = Behaviour()
    rows, outcomes = [], []
    groups: dict[str, tuple[str, ...]] = {}
    for event in events:
        grouped = grouped_features(event.offer, behaviour)
        groups = {name: tuple(values) for name, values in grouped.items()}
        if event.accepted is not None:
            rows.append([value for values in grouped.values() for value in values.values()])
            outcomes.append(float(event.accepted))
        behaviour.decided(event.offer, at_s=event.decided_s)
    return User(tuple(events), np.array(rows), np.array(outcomes), groups)


def _columns(user: User, choice: Choice) -> list[int]:
    names = [(group, name) for group, names in user.groups.items() for name in names]
    return [number for number, (group, _) in enumerate(names) if group in choice.groups]


def newton(inputs: Array, outcomes: Array, penalty: float) -> Array:
    """Return the bias and the weights of a ridge logistic regression.  # [1 + features]."""
    ones = np.column_stack([np.ones(len(inputs)), inputs])
    penalties = np.full(ones.shape[1], penalty)
    penalties[0] = 0.0
    weights = np.zeros(ones.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-ones @ weights))
        gradient = ones.T @ (chance - outcomes) + penalties * weights
        curvature = (ones * (chance * (1 - chance))[:, None]).T @ ones + np.diag(penalties + 1e-9)
        step = np.linalg.solve(curvature, gradient)
        weights -= step
        if np.abs(step).max() < 1e-8:
            break
    return weights


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()
