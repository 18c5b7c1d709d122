"""The draft budget: a tree is cut where more nodes no longer pay for themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drafting.draft_budget import StepCosts, best_cut

CPU = StepCosts({0: 25.0, 1: 30.0, 3: 29.0, 7: 41.0, 15: 58.0}, 31)


def _kept(ranked, costs_ms):
    return best_cut(ranked, np.arange(len(ranked), dtype=np.int32), costs_ms)


def test_costs_never_fall_and_extend_past_the_last_timing():
    costs = CPU.costs_ms
    assert len(costs) == 32
    assert np.all(np.diff(costs) >= 0)
    assert costs[1] == pytest.approx(29.5)  # the mean of 30 and 29
    assert costs[31] == pytest.approx(58 + 16 * 17 / 8)


def test_unlikely_nodes_are_all_cut():
    assert _kept(np.full(16, 0.02, dtype=np.float32), CPU.costs_ms) == 0


def test_a_likely_chain_is_kept_whole():
    assert _kept(np.full(31, 0.98, dtype=np.float32), CPU.costs_ms) == 31


def test_the_cut_gets_past_a_bump_in_the_costs():
    stairs = StepCosts({0: 10.0, 1: 16.0, 4: 16.0}, 4)
    assert _kept(np.array([0.5, 0.5, 0.5, 0.5], dtype=np.float32), stairs.costs_ms) == 4
    assert _kept(np.array([0.5], dtype=np.float32), stairs.costs_ms) == 0


@given(st.lists(st.floats(0, 1), max_size=20))
def test_the_cut_is_the_best_of_all_cuts(probabilities):
    ranked = np.array(sorted(probabilities, reverse=True), dtype=np.float32)
    kept = _kept(ranked, CPU.costs_ms)
    goodputs = [(1 + ranked[:n].sum()) / CPU.costs_ms[n] for n in range(len(ranked) + 1)]
    assert kept == 0 or goodputs[kept] >= max(goodputs) - 1e-6
    if kept == 0:
        assert max(goodputs) <= 1.03 * goodputs[0] + 1e-6


def test_measuring_takes_the_fastest_round_of_each_size():
    times = iter([20.0, 90.0, 21.0, 30.0, 25.0, 31.0])
    costs = StepCosts.measure(lambda _nodes: next(times), sizes=(0, 8), repeats=3)
    assert costs.costs_ms[0] == pytest.approx(20)
    assert costs.costs_ms[8] == pytest.approx(30)


def test_a_slow_machine_keeps_the_ratio_of_costs_but_a_wrong_ratio_is_corrected():
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


def test_one_step_that_waited_for_something_else_changes_little():
    costs = StepCosts({0: 10.0, 8: 20.0}, 8)
    costs.observe(8, 1e6)
    assert costs.costs_ms[8] == pytest.approx(20, rel=0.05)


@pytest.mark.parametrize("timings", [{}, {0: 0.0}, {-1: 3.0}])
def test_missing_or_impossible_timings_are_refused(timings):
    with pytest.raises(ValueError, match="step costs"):
        StepCosts(timings, 4)
