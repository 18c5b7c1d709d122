"""`python -m benchmarks.gate`: how well the gate tells what users accept, on users that it did not see.

With `--train FILE` the weights are trained on all users and written: completion/gate.json is made by that.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.data import read_records
from completion.gate import Gate, GateWeights, Strictness
from completion.gate_features import Behaviour, Offer, features

FILE = "coderec_events.jsonl.gz"
RIDGE = 200.0
"""Penalty of squared weights: 1,100 events of 21 people support only a smooth model."""
KEPT = {Strictness.LOW: 0.99, Strictness.NORMAL: 0.95, Strictness.HIGH: 0.85}
"""Share of acceptances that each strictness keeps."""
FOLDS_OF_CALIBRATION = 10

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Event:
    """One suggestion that was shown in the study; `accepted` is None where no decision was recorded."""

    offer: Offer
    accepted: bool | None
    decided_s: float


def sessions(records: list[dict[str, Any]]) -> dict[int, list[Event]]:
    """The study by user, in order."""
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
    return found


def matrix(events: list[Event]) -> tuple[list[str], Array, Array]:
    """Features and outcomes of one user's decided events, each with what was known before it.  # [events, features]."""
    behaviour = Behaviour()
    rows, outcomes = [], []
    names: list[str] = []
    for event in events:
        values = features(event.offer, behaviour)
        names = list(values)
        if event.accepted is not None:
            rows.append(list(values.values()))
            outcomes.append(float(event.accepted))
        behaviour.decided(event.offer, accepted=bool(event.accepted), at_s=event.decided_s)
    return names, np.array(rows), np.array(outcomes)


def train(users: dict[int, list[Event]]) -> GateWeights:
    """Ridge logistic regression by Newton's method, without thresholds."""
    parts = [matrix(events) for events in users.values()]
    names = parts[0][0]
    inputs = np.concatenate([part[1] for part in parts])
    outcomes = np.concatenate([part[2] for part in parts])
    means, scales = inputs.mean(0), inputs.std(0) + 1e-3
    weights = _newton((inputs - means) / scales, outcomes)
    return GateWeights(
        names=tuple(names),
        means=tuple(means.tolist()),
        scales=tuple(scales.tolist()),
        weights=tuple(weights[1:].tolist()),
        bias=float(weights[0]),
        thresholds={},
    )


def thresholds(probabilities: Array, outcomes: Array) -> dict[str, float]:
    """For each strictness the probability that keeps its share of acceptances, of users that were left out."""
    accepted = probabilities[outcomes == 1]
    return {level.value: round(float(np.quantile(accepted, 1 - kept)), 4) for level, kept in KEPT.items()}


def _newton(inputs: Array, outcomes: Array) -> Array:
    ones = np.column_stack([np.ones(len(inputs)), inputs])
    penalty = np.full(ones.shape[1], RIDGE)
    penalty[0] = 0.0
    weights = np.zeros(ones.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-ones @ weights))
        gradient = ones.T @ (chance - outcomes) + penalty * weights
        curvature = (ones * (chance * (1 - chance))[:, None]).T @ ones + np.diag(penalty + 1e-9)
        step = np.linalg.solve(curvature, gradient)
        weights -= step
        if np.abs(step).max() < 1e-8:
            break
    return weights


def _replay(model: GateWeights, users: dict[int, list[Event]]) -> tuple[Array, Array]:
    """Probabilities and outcomes as a user's own gate gives them, adapting as it goes."""
    probabilities, outcomes = [], []
    for events in users.values():
        gate = Gate(model)
        for event in events:
            if event.accepted is not None:
                probabilities.append(gate.probability(event.offer))
                outcomes.append(float(event.accepted))
                gate.learn(event.offer, accepted=event.accepted, at_s=event.decided_s)
            else:
                gate.behaviour.decided(event.offer, accepted=False, at_s=event.decided_s)
    return np.array(probabilities), np.array(outcomes)


def left_out(users: dict[int, list[Event]]) -> tuple[Array, Array]:
    """Each user's events under the gate that was trained on all others."""
    parts = []
    for user, events in users.items():
        others = {key: value for key, value in users.items() if key != user}
        parts.append(_replay(train(others), {user: events}))
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def auc(probabilities: Array, outcomes: Array) -> float:
    """Chance that an accepted suggestion is ranked above a rejected one; ties count half."""
    accepted, rejected = probabilities[outcomes == 1], probabilities[outcomes == 0]
    above = (accepted[:, None] > rejected[None, :]).mean()
    return float(above + 0.5 * (accepted[:, None] == rejected[None, :]).mean())


def calibration_error(probabilities: Array, outcomes: Array) -> float:
    """Mean distance between said and seen acceptance over equally large bins (expected calibration error)."""
    order = np.array_split(np.argsort(probabilities), FOLDS_OF_CALIBRATION)
    return float(
        sum(abs(probabilities[part].mean() - outcomes[part].mean()) * len(part) for part in order) / len(outcomes)
    )


def shows_avoided(probabilities: Array, outcomes: Array, kept: float = 0.95) -> float:
    """Share of all suggestions under the threshold that keeps `kept` of the accepted ones."""
    return float((probabilities < np.quantile(probabilities[outcomes == 1], 1 - kept)).mean())


def decision_ms(gate: Gate, events: list[Event]) -> float:
    """Median time of one decision."""
    times = []
    for event in events:
        started = time.perf_counter()
        gate.shows(event.offer, Strictness.NORMAL)
        times.append(1e3 * (time.perf_counter() - started))
    return float(np.median(times))


def main() -> None:
    """Evaluate on users that were left out; with --train write the weights."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate", description=__doc__)
    parser.add_argument("--data-dir", help="folder of the open data")
    parser.add_argument("--train", type=Path, metavar="FILE", help="train on all users and write the weights")
    given = parser.parse_args()
    users = sessions(read_records(FILE, given.data_dir))
    probabilities, outcomes = left_out(users)
    if given.train:
        trained = replace(train(users), thresholds=thresholds(probabilities, outcomes))
        given.train.write_text(trained.to_json(), encoding="utf-8")
        print(f"Weights of {len(users)} users written to {given.train}.")
    shipped = Gate(GateWeights.shipped())
    figures = {
        "users": len(users),
        "events": len(outcomes),
        "auc": round(auc(probabilities, outcomes), 4),
        "calibration_error": round(calibration_error(probabilities, outcomes), 4),
        "shows_avoided": round(shows_avoided(probabilities, outcomes), 4),
        "decision_ms": round(decision_ms(shipped, next(iter(users.values()))), 3),
    }
    for name, value in figures.items():
        print(f"{name:20} {value}")
    print(json.dumps(figures))


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()


if __name__ == "__main__":
    main()
