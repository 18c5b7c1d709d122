"""The budget keeps what pays, and nothing where nothing pays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drafting.draft_budget import StepCosts, best_cut

CPU = StepCosts({0: 25.0, 1: 30.0, 3: 29.0, 7: 41.0, 15: 58.0}, 31)


def test_costs_never_fall_and_reach_past_the_last_timing():
    costs = CPU.costs_ms
    assert len(costs) == 32
    assert np.all(np.diff(costs) >= 0)
    assert costs[1] == pytest.approx(29.5)  # 30 and 29 share their mean
    assert costs[31] == pytest.approx(58 + 16 * 17 / 8)


def test_nothing_is_drafted_when_nothing_is_likely():
    assert best_cut(np.full(16, 0.02, dtype=np.float32), CPU.costs_ms) == 0


def test_a_sure_chain_is_taken_whole():
    assert best_cut(np.full(31, 0.98, dtype=np.float32), CPU.costs_ms) == 31


def test_a_bump_in_the_costs_is_seen_past():
    stairs = StepCosts({0: 10.0, 1: 16.0, 4: 16.0}, 4)
    assert best_cut(np.array([0.5, 0.5, 0.5, 0.5], dtype=np.float32), stairs.costs_ms) == 4
    assert best_cut(np.array([0.5], dtype=np.float32), stairs.costs_ms) == 0


@given(st.lists(st.floats(0, 1), max_size=20))
def test_the_cut_is_the_best_of_all_cuts(probabilities):
    ranked = np.array(sorted(probabilities, reverse=True), dtype=np.float32)
    kept = best_cut(ranked, CPU.costs_ms)
    goodputs = [(1 + ranked[:n].sum()) / CPU.costs_ms[n] for n in range(len(ranked) + 1)]
    assert kept == 0 or goodputs[kept] >= max(goodputs) - 1e-6
    if kept == 0:
        assert max(goodputs) <= 1.03 * goodputs[0] + 1e-6


def test_measuring_takes_the_fastest_round_of_each_size():
    times = iter([20.0, 90.0, 21.0, 30.0, 25.0, 31.0])
    costs = StepCosts.measure(lambda _nodes: next(times), sizes=(0, 8), repeats=3)
    assert costs.costs_ms[0] == pytest.approx(20)
    assert costs.costs_ms[8] == pytest.approx(30)


def test_a_slow_hour_changes_no_ratio_much_but_a_wrong_shape_is_corrected():
    slow = StepCosts({0: 10.0, 8: 20.0}, 8)
    before = slow.costs_ms[8] / slow.costs_ms[0]
    for _ in range(50):
        slow.observe(0, 30.0)
        slow.observe(8, 60.0)
    assert slow.costs_ms[8] / slow.costs_ms[0] == pytest.approx(before, rel=0.1)
    for _ in range(300):
        slow.observe(0, 10.0)
        slow.observe(8, 40.0)
    assert slow.costs_ms[8] / slow.costs_ms[0] > 3.0


@pytest.mark.parametrize("timings", [{}, {0: 0.0}, {-1: 3.0}])
def test_impossible_timings_are_refused(timings):
    with pytest.raises(ValueError, match="step costs"):
        StepCosts(timings, 4)
