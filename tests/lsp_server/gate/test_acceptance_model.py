"""The acceptance model: its decisions, its adaptation within bounds, and the agreement of its weights and features."""

import json
import math
from importlib.resources import files

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lsp_server.gate.acceptance_model import MAX_BIAS, AcceptanceModel, AcceptanceWeights, Strictness
from lsp_server.gate.features import Behaviour, Offer, features


def offer(text="value + 1", prefix="def f(value):\n    return ", probability=-0.1, at_s=0.0):
    return Offer(text, prefix, 20, 4, probability, at_s)


def test_the_shipped_weights_name_features_in_their_order():
    known = tuple(features(offer(), Behaviour()))
    shipped = tuple(AcceptanceWeights.shipped().regression.weights)
    assert shipped == tuple(name for name in known if name in shipped)
    assert len(shipped) > 20


@pytest.mark.parametrize("one", [("value + 1", -0.1), ("", None), (")\nclass A:\n    return", -3.0)])
def test_a_probability_is_that_of_the_shipped_regression_and_the_users_bias(one):
    gate, shown = AcceptanceModel(AcceptanceWeights.shipped()), offer(text=one[0], probability=one[1], at_s=3.0)
    gate.learn(offer(), accepted=True, at_s=1.0)
    data = json.loads(files("lsp_server.gate").joinpath("gate.json").read_text(encoding="utf-8"))
    values, logit = features(shown, gate.behaviour), data["bias"] + gate.user_bias
    for name, mean, scale, weight in data["features"]:
        logit += weight * (values[name] - mean) / scale
    assert gate.probability(shown) == pytest.approx(1 / (1 + math.exp(-logit)), rel=1e-12)


def test_a_suggestion_with_a_higher_probability_is_more_likely_to_be_accepted():
    gate = AcceptanceModel(AcceptanceWeights.shipped())
    assert gate.probability(offer(probability=-0.05)) > gate.probability(offer(probability=-1.5)) + 0.1


def test_the_first_ordinary_suggestion_of_a_session_is_shown():
    gate = AcceptanceModel(AcceptanceWeights.shipped())
    assert gate.shows(offer(), Strictness.HIGH)
    assert gate.shows(offer(probability=None), Strictness.NORMAL)


def test_a_stricter_gate_shows_fewer_suggestions():
    gate = AcceptanceModel(AcceptanceWeights.shipped())
    offers = [offer(text="x" * n, probability=-p / 4) for n in (1, 5, 40) for p in range(10)]
    counts = [sum(gate.shows(one, level) for one in offers) for level in (*Strictness,)[:4]]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == len(offers)
    assert counts[-1] < counts[1]


def test_acceptances_raise_the_probability_and_rejections_lower_it():
    accepting, rejecting = AcceptanceModel(AcceptanceWeights.shipped()), AcceptanceModel(AcceptanceWeights.shipped())
    for number in range(12):
        accepting.learn(offer(at_s=10.0 * number), accepted=True, at_s=10.0 * number + 1)
        rejecting.learn(offer(at_s=10.0 * number), accepted=False, at_s=10.0 * number + 1)
    later = offer(prefix="def g(other):\n    x = ", at_s=200.0)
    assert accepting.probability(later) > rejecting.probability(later) + 0.2


@given(st.lists(st.booleans(), max_size=80))
@example([False] * 80)
@example([True] * 300)
def test_the_users_bias_stays_within_its_bounds(decisions):
    gate = AcceptanceModel(AcceptanceWeights.shipped())
    for accepted in decisions:
        gate.learn(offer(), accepted=accepted, at_s=1.0)
        assert -MAX_BIAS <= gate.user_bias <= MAX_BIAS


@given(
    st.text(max_size=40),
    st.text(max_size=60),
    st.one_of(st.none(), st.floats(-20, 0)),
    st.floats(0, 1e9),
    st.booleans(),
)
def test_any_offer_has_a_probability(text, prefix, probability, at_s, accepted):
    gate = AcceptanceModel(AcceptanceWeights.shipped())
    for _ in range(2):
        one = Offer(text, prefix, 0, 0, probability, at_s)
        assert 0 < gate.probability(one) < 1
        gate.learn(one, accepted=accepted, at_s=at_s)
