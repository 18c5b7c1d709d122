"""Draws are deterministic in (seed, position), respect truncation and constraints, and follow the distribution."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion.model.sampling import _truncate, draw
from completion.request import Sampling

ROW = np.log(np.array([0.5, 0.25, 0.15, 0.07, 0.03], dtype=np.float32))


def frequencies(sampling: dict, draws: int = 4000, **options) -> np.ndarray:
    tokens = [draw(ROW, Sampling(seed=7, **sampling), position, **options) for position in range(draws)]
    return np.bincount(tokens, minlength=len(ROW)) / draws


def test_a_greedy_draw_is_the_best_token_and_the_lowest_id_among_equals():
    assert draw(np.array([1.0, 3.0, 3.0], dtype=np.float32), Sampling(), 0) == 1


def test_samples_follow_the_distribution():
    # with 4,000 draws, a share of one half has a standard error of 0.008
    assert np.abs(frequencies({"temperature": 1.0}) - np.exp(ROW)).max() < 0.03


def test_restricted_samples_follow_the_renormalised_distribution():
    allowed = frequencies({"temperature": 1.0}, allowed=lambda token: token in {1, 3})
    assert allowed == pytest.approx([0, 0.25 / 0.32, 0, 0.07 / 0.32, 0], abs=0.03)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=12), st.lists(st.sampled_from([0, 1, 2.5, 9]), min_size=12))
def test_a_greedy_draw_with_costs_is_the_best_of_what_is_left(row, costs):
    left = [score - cost for score, cost in zip(row, costs, strict=False)]
    drawn = draw(np.array(row, dtype=np.float32), Sampling(), 0, cost=lambda token: costs[token])
    assert left[drawn] == max(left)


def test_a_cost_in_nats_divides_the_share_of_a_token_by_its_exponential():
    found = frequencies({"temperature": 1.0}, cost=lambda token: np.log(4) * (token == 0))
    assert found[0] == pytest.approx(0.125 / 0.625, abs=0.03)


@pytest.mark.parametrize(
    ("options", "shares"),
    [
        ({"allowed": lambda token: token > 0}, [0, 0.55, 0.45, 0]),
        ({"cost": lambda token: 3.2 * (token == 0)}, [0.355, 0.355, 0.29, 0]),
        ({"cost": lambda token: 3.2 * (token < 2)}, [0.55, 0, 0.45, 0]),
    ],
)
def test_tokens_far_below_one_that_is_rejected_or_costs_are_drawn_by_their_own_probabilities(options, shares):
    row = np.array([8.2, 5.0, 4.98, -9.0], dtype=np.float32)  # at this temperature 32 nats apart
    drawn = [draw(row, Sampling(temperature=0.1, seed=7), position, **options) for position in range(4000)]
    assert np.bincount(drawn, minlength=4) / 4000 == pytest.approx(shares, abs=0.03)


@given(st.integers(0, 2**63), st.integers(0, 10**6))
def test_the_same_seed_and_position_draw_the_same_token(seed, position):
    sampling = Sampling(temperature=0.8, seed=seed)
    assert draw(ROW, sampling, position) == draw(ROW.copy(), sampling, position)


def test_top_p_and_min_p_exclude_unlikely_tokens():
    assert frequencies({"temperature": 1.0, "top_p": 0.7}, 500)[2:].sum() == 0
    assert frequencies({"temperature": 1.0, "min_p": 0.2}, 500)[3:].sum() == 0


def test_only_candidates_are_drawn_and_nothing_if_no_token_is_allowed():
    assert draw(ROW, Sampling(), 0, candidates=np.array([3, 4], dtype=np.int32)) == 3
    assert draw(ROW, Sampling(), 0, candidates=np.array([], dtype=np.int32)) is None
    assert draw(ROW, Sampling(), 0, allowed=lambda _token: False) is None


def test_the_best_allowed_token_is_found_among_the_least_likely_of_a_large_vocabulary():
    row = np.linspace(0, 1, 5000, dtype=np.float32)
    assert draw(row, Sampling(), 0, allowed=lambda token: token == 12) == 12


@pytest.mark.parametrize("spread", [0.01, 1.0, 6.0])
@pytest.mark.parametrize("top_p", [0.1, 0.9, 0.999])
def test_a_nucleus_is_the_smallest_set_of_likeliest_tokens_with_the_mass(spread, top_p):
    row = (spread * np.random.default_rng(1).standard_normal(20_000)).astype(np.float32)
    kept = np.flatnonzero(_truncate(row, Sampling(1.0, top_p=top_p)) > -np.inf)
    probabilities = np.exp(row.astype(np.float64))
    probabilities /= probabilities.sum()
    falling = np.sort(probabilities)[::-1]
    assert abs(len(kept) - (np.searchsorted(np.cumsum(falling), top_p) + 1)) <= 1  # sums differ in their last bits
    np.testing.assert_allclose(np.sort(probabilities[kept])[::-1], falling[: len(kept)])


@pytest.mark.parametrize("truncated", [{"top_p": 0.7}, {"min_p": 0.3}, {"top_p": 1e-6}, {"top_p": 0.7, "min_p": 0.3}])
def test_a_nucleus_of_which_no_token_is_allowed_grows_by_the_likeliest_allowed_one(truncated):
    for position in range(50):
        sampling = Sampling(temperature=0.8, seed=3, **truncated)
        assert draw(ROW, sampling, position, allowed=lambda token: token >= 3) == 3
        assert draw(ROW, sampling, position, np.array([2, 3, 4], np.int32), lambda token: token == 4) == 4
        assert draw(ROW, sampling, position, allowed=lambda _token: False) is None


@given(
    st.floats(0, 1e-30, exclude_min=True),
    st.floats(1e-6, 1),
    st.floats(0, 1),
    st.lists(st.floats(-80, 80, width=32), min_size=2, max_size=20, unique=True),
)
def test_the_lowest_temperatures_take_the_best_token(temperature, top_p, min_p, logits):
    row = np.array(logits, np.float32)
    sampling = Sampling(temperature=temperature, top_p=top_p, min_p=min_p)
    assert draw(row, sampling, 5) == int(row.argmax())
