"""A cache plan that is applied to the cached tokens gives the tokens of the new prompt."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from completion.cache.kv_plan import plan_exact, plan_pie

TOKENS = st.lists(st.integers(0, 5), max_size=120)


@st.composite
def edited(draw):
    """Draw a sequence, and the same sequence after several deletions, insertions and moves."""
    old = draw(st.lists(st.integers(0, 400), min_size=1, max_size=150))
    new = list(old)
    for _ in range(draw(st.integers(0, 5))):
        start = draw(st.integers(0, len(new)))
        end = draw(st.integers(start, min(len(new), start + 40)))
        piece = new[start:end]
        del new[start:end]
        kind = draw(st.sampled_from(["delete", "insert", "move"]))
        if kind == "move":
            position = draw(st.integers(0, len(new)))
            new[position:position] = piece
        elif kind == "insert":
            new[start:start] = piece + draw(st.lists(st.integers(0, 400), max_size=8))
    return old, new


def assert_gives(plan, old, new):
    computed = set(plan.compute.tolist())
    for slot, token in enumerate(new):
        source = plan.sources[slot]
        assert slot in computed or source >= 0
        if source >= 0:
            assert old[source] == token
    assert plan.kept + plan.shifted + plan.computed == len(new)
    assert np.all(np.diff(plan.compute) > 0)


@given(edited(), st.integers(0, 20))
def test_a_pie_plan_gives_the_new_tokens(pair, repair_tokens):
    old, new = pair
    assert_gives(plan_pie(old, new, repair_tokens=repair_tokens), old, new)


@given(TOKENS, TOKENS)
def test_plans_between_unrelated_repetitive_sequences_are_valid(old, new):
    assert_gives(plan_pie(old, new, repair_tokens=2), old, new)
    assert_gives(plan_exact(old, new), old, new)


def test_after_appending_only_the_new_tokens_are_computed():
    old = list(range(100))
    plan = plan_pie(old, [*old, 500, 501], repair_tokens=16)
    assert (plan.kept, plan.shifted, plan.compute.tolist()) == (100, 0, [100, 101])


def test_an_insertion_shifts_the_tokens_after_it_and_computes_the_first_of_them_again():
    old = list(range(100))
    plan = plan_pie(old, [*old[:40], 500, *old[40:]], repair_tokens=4)
    assert plan.compute.tolist() == [40, 41, 42, 43, 44]
    assert (plan.kept, plan.shifted) == (40, 56)


def test_two_runs_that_change_their_order_are_reused():
    first, second = list(range(50)), list(range(100, 150))
    plan = plan_pie([*first, 7777, *second], [*second, 7777, *first], repair_tokens=0)
    assert plan.shifted == 100
    assert plan.compute.tolist() == [50]


def test_special_positions_after_the_change_are_computed():
    old = list(range(100))
    plan = plan_pie(old, [500, *old], repair_tokens=0, always_compute=[0, 30])
    assert plan.compute.tolist() == [0, 30]


def test_an_exact_plan_reuses_the_common_prefix_only():
    plan = plan_exact(list(range(50)), [*range(20), 99, *range(21, 50)])
    assert (plan.kept, plan.shifted, plan.computed) == (20, 0, 30)


def test_special_positions_in_the_common_prefix_are_kept():
    old = list(range(100))
    plan = plan_pie(old, [*old, 500], repair_tokens=0, always_compute=[0, 30])
    assert plan.compute.tolist() == [100]


def test_a_run_does_not_reach_back_into_the_common_prefix():
    same, first, second = [7] * 10, list(range(100, 150)), list(range(200, 250))
    plan = plan_pie([*same, *first, *same, *second], [*same, *second], repair_tokens=0)
    assert (plan.kept, plan.shifted, plan.computed) == (10, 50, 0)
