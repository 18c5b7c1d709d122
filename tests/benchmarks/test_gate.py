"""The evaluation of the gate: the replay equals the gate of the product, and no user is in their own training data."""

import random
from datetime import UTC, datetime
from importlib.resources import files

import numpy as np
import pytest

from benchmarks.gate.__main__ import auc, calibration_error, check, leave_users_out, shows_avoided
from benchmarks.gate.training import choose, read_users, replay, to_json, train
from lsp_server.gate.acceptance_model import AcceptanceModel, AcceptanceWeights

START_S = 1_600_000_000.0


def record(user, event, *, accepted, log_probability):
    said = datetime.fromtimestamp(START_S + 10 * event, UTC).isoformat()
    decided = datetime.fromtimestamp(START_S + 10 * event + 3, UTC).isoformat()
    return {
        "user_id": user,
        "event": event,
        "timestamp": said,
        "decision_timestamp": decided if accepted is not None else None,
        "accepted": accepted,
        "suggestion": f"value_{event} + 1",
        "prompt": f"def f_{event}(x):\n    return ",
        "features": {"documentLength": 90, "promptEndPos": 40, "numTokens": 4, "meanLogProb": log_probability},
    }


@pytest.fixture(scope="module")
def users():
    """Six users who mostly accept what the model is sure of. One decision in ten is not recorded."""
    chance = random.Random(1)
    records = []
    for user in range(6):
        for event in range(30):
            log_probability = -2 * chance.random()
            accepted = chance.random() < (0.8 if log_probability > -0.8 else 0.2)
            undecided = chance.random() < 0.1
            records.append(
                record(user, event, accepted=None if undecided else accepted, log_probability=log_probability)
            )
    return read_users(records)


def test_the_replay_says_what_the_products_gate_says(users):
    choice = choose(users[1:])
    model = train(users[1:], choice)
    gate, said = AcceptanceModel(model), []
    for event in users[0].events:
        if event.accepted is None:
            gate.behaviour.decided(event.offer, at_s=event.decided_s)
            continue
        said.append(gate.probability(event.offer))
        gate.learn(event.offer, accepted=event.accepted, at_s=event.decided_s)
    assert replay(model, users[0], choice) == pytest.approx(np.array(said))


def test_a_users_own_outcomes_change_nothing_of_what_judges_them(users):
    turned = type(users[0])(users[0].events, users[0].inputs, 1 - users[0].outcomes, users[0].groups)
    as_it_was, with_other_outcomes = (leave_users_out([one, *users[1:]])[0] for one in (users[0], turned))
    assert with_other_outcomes.choice == as_it_was.choice
    assert with_other_outcomes.probabilities[0] == as_it_was.probabilities[0]


def test_what_can_be_learned_is_learned(users):
    found = leave_users_out(users)
    probabilities = np.concatenate([one.probabilities for one in found])
    outcomes = np.concatenate([one.outcomes for one in found])
    assert auc(probabilities, outcomes) > 0.65
    assert "probability" in found[0].choice.groups


def test_the_measures_as_defined():
    outcomes = np.array([0.0, 0.0, 1.0, 1.0])
    assert auc(np.array([0.1, 0.4, 0.4, 0.9]), outcomes) == 0.875
    assert shows_avoided(np.array([0.1, 0.2, 0.3, 0.4]), outcomes, kept=1.0) == 0.5
    assert calibration_error(np.full(100, 0.3), (np.arange(100) % 10 < 3).astype(float)) == pytest.approx(0.0)


def test_a_user_without_decisions_is_none_of_the_study():
    decided = [
        record(user, event, accepted=bool(event % 2), log_probability=-1.0) for user in range(2) for event in (1, 2)
    ]
    assert len(read_users([*decided, record(2, 1, accepted=None, log_probability=-1.0)])) == 2


@pytest.mark.parametrize("accepting", [(), (0,), (0, 1)])
def test_too_few_users_or_acceptances_end_the_benchmark(accepting):
    records = [
        record(user, 1, accepted=user in accepting, log_probability=-1.0) for user in range(2 if accepting else 4)
    ]
    with pytest.raises(SystemExit, match=r"users with \d acceptances"):
        check(read_users(records))


def test_the_shipped_weights_are_as_the_training_writes_them():
    text = files("lsp_server.gate").joinpath("gate.json").read_text(encoding="utf-8")
    assert to_json(AcceptanceWeights.shipped()) == text
