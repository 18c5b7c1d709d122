"""`python -m benchmarks.gate`: how well the gate predicts what users accept, on users outside its training data.

The evaluation is nested: for each user, the groups of features, the penalty, the learning rate and the threshold are
chosen on the other users only. `--train FILE` chooses and trains on all users and writes the weights. It made the
weights that ship with the language server.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.data import read_records
from benchmarks.gate.training import Array, Choice, User, choose, left_out_by_parts, read_users, replay, to_json, train
from lsp_server.gate.acceptance_model import AcceptanceModel, AcceptanceWeights, Strictness

FILE = "coderec_events.jsonl.gz"
"""Data file: shown suggestions of a published study, with the decisions of its users."""
KEPT = {Strictness.LOW: 0.99, Strictness.NORMAL: 0.95, Strictness.HIGH: 0.85}
"""Share of acceptances that each strictness keeps."""
FEWEST_USERS = 3
"""Minimum number of users: one is tested, and the others are divided into those to train on and those to choose on."""
BINS_OF_CALIBRATION = 10
"""Number of bins of the calibration error."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Decisions of one user with a gate that was chosen and trained on all others.  # Arrays are [decided]."""

    choice: Choice
    probabilities: Array
    outcomes: Array
    shown: Array


def leave_users_out(users: Sequence[User]) -> list[LeftOut]:
    """Evaluate each user with a gate that was tuned on the other users only."""
    found = []
    for user in users:
        others = [other for other in users if other is not user]
        choice = choose(others)
        model = train(others, choice)
        probabilities = replay(model, user, choice)
        threshold = thresholds(*left_out_by_parts(others, choice))[Strictness.NORMAL]
        found.append(LeftOut(choice, probabilities, user.outcomes, (probabilities >= threshold).astype(float)))
    return found


def thresholds(probabilities: Array, outcomes: Array) -> dict[str, float]:
    """Return, for each strictness, the threshold that keeps its share of the acceptances of left-out users."""
    accepted = probabilities[outcomes == 1]
    return {level.value: round(float(np.quantile(accepted, 1 - kept)), 4) for level, kept in KEPT.items()}


def auc(probabilities: Array, outcomes: Array) -> float:
    """Return the probability that an accepted suggestion ranks above a rejected one. Ties count half."""
    accepted, rejected = probabilities[outcomes == 1], probabilities[outcomes == 0]
    above = (accepted[:, None] > rejected[None, :]).mean()
    return float(above + 0.5 * (accepted[:, None] == rejected[None, :]).mean())


def calibration_error(probabilities: Array, outcomes: Array) -> float:
    """Return the mean distance of predicted and observed acceptance over bins of equal size."""
    order = np.array_split(np.argsort(probabilities), BINS_OF_CALIBRATION)
    return float(
        sum(abs(probabilities[part].mean() - outcomes[part].mean()) * len(part) for part in order) / len(outcomes)
    )


def shows_avoided(probabilities: Array, outcomes: Array, kept: float = 0.95) -> float:
    """Return the share of suggestions below the threshold that keeps `kept` of the accepted ones."""
    return float((probabilities < np.quantile(probabilities[outcomes == 1], 1 - kept)).mean())


def decision_ms(gate: AcceptanceModel, user: User) -> float:
    """Return the median time of one decision."""
    times = []
    for event in user.events:
        started = time.perf_counter()
        gate.shows(event.offer, Strictness.NORMAL)
        times.append(1e3 * (time.perf_counter() - started))
    return float(np.median(times))


def write_weights(users: Sequence[User], path: Path) -> None:
    """Choose and train on all users, and write the weights."""
    choice = choose(users)
    weights = replace(train(users, choice), thresholds=thresholds(*left_out_by_parts(users, choice)))
    path.write_text(to_json(weights), encoding="utf-8")
    print(f"Weights of {len(users)} users written to {path}: {choice}.")


def check(users: Sequence[User]) -> None:
    """Check that gates can be trained and tested.

    Raises:
        SystemExit: There are too few users, or only one of them has accepted anything.
    """
    outcomes = [outcome for user in users for outcome in user.outcomes]
    if len(users) < FEWEST_USERS or sum(any(user.outcomes) for user in users) < 2:
        raise SystemExit(
            f"The data has {len(users)} users with {sum(outcomes):.0f} acceptances in {len(outcomes)} decisions. The"
            f" gate needs {FEWEST_USERS} users and acceptances of several. Name another folder with --data-dir."
        )


def main() -> None:
    """Evaluate on left-out users. With `--train`, write the weights first."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate", description=__doc__)
    parser.add_argument("--data-dir", help="folder of the data")
    parser.add_argument("--train", type=Path, metavar="FILE", help="train on all users and write the weights")
    given = parser.parse_args()
    users = read_users(read_records(FILE, given.data_dir))
    check(users)
    if given.train:
        write_weights(users, given.train)
    found = leave_users_out(users)
    probabilities = np.concatenate([one.probabilities for one in found])
    outcomes = np.concatenate([one.outcomes for one in found])
    shown = np.concatenate([one.shown for one in found])
    for choice, count in Counter(one.choice for one in found).most_common():
        print(f"chosen for {count:2} users: {choice}")
    figures = {
        "users": len(users),
        "events": len(outcomes),
        "auc": round(auc(probabilities, outcomes), 4) if 0 in outcomes else None,
        "calibration_error": round(calibration_error(probabilities, outcomes), 4),
        "shows_avoided": round(shows_avoided(probabilities, outcomes), 4),
        "shows_avoided_own_threshold": round(float(1 - shown.mean()), 4),
        "acceptances_kept_own_threshold": round(float(shown[outcomes == 1].mean()), 4),
        "decision_ms": round(decision_ms(AcceptanceModel(AcceptanceWeights.shipped()), users[0]), 3),
    }
    for name, value in figures.items():
        print(f"{name:32} {value}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
