"""A cache plan, applied to the cached tokens, gives the new tokens."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from completion.cache.kv_plan import plan_exact, plan_pie

TOKENS = st.lists(st.integers(0, 5), max_size=120)


@st.composite
def edited(draw):
    """A sequence and the same after several cuts, insertions and moves."""
    old = draw(st.lists(st.integers(0, 400), min_size=1, max_size=150))
    new = list(old)
    for _ in range(draw(st.integers(0, 5))):
        start = draw(st.integers(0, len(new)))
        end = draw(st.integers(start, min(len(new), start + 40)))
        piece = new[start:end]
        del new[start:end]
        kind = draw(st.sampled_from(["delete", "insert", "move"]))
        if kind == "move":
            place = draw(st.integers(0, len(new)))
            new[place:place] = piece
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
def test_pie_plan_gives_the_new_tokens(pair, repair_tokens):
    old, new = pair
    assert_gives(plan_pie(old, new, repair_tokens=repair_tokens), old, new)


@given(TOKENS, TOKENS)
def test_plans_of_unrelated_repetitive_texts_are_valid(old, new):
    assert_gives(plan_pie(old, new, repair_tokens=2), old, new)
    assert_gives(plan_exact(old, new), old, new)


def test_appending_computes_only_what_was_appended():
    old = list(range(100))
    plan = plan_pie(old, [*old, 500, 501], repair_tokens=16)
    assert (plan.kept, plan.shifted, plan.compute.tolist()) == (100, 0, [100, 101])


def test_an_insertion_shifts_what_follows_and_repairs_its_start():
    old = list(range(100))
    plan = plan_pie(old, [*old[:40], 500, *old[40:]], repair_tokens=4)
    assert plan.compute.tolist() == [40, 41, 42, 43, 44]
    assert (plan.kept, plan.shifted) == (40, 56)


def test_runs_that_change_sides_are_found():
    first, second = list(range(50)), list(range(100, 150))
    plan = plan_pie([*first, 7777, *second], [*second, 7777, *first], repair_tokens=0)
    assert plan.shifted == 100
    assert plan.compute.tolist() == [50]


def test_special_positions_behind_the_change_are_computed():
    old = list(range(100))
    plan = plan_pie(old, [500, *old], repair_tokens=0, always_compute=[0, 30])
    assert plan.compute.tolist() == [0, 30]


def test_an_exact_plan_reuses_the_common_beginning_only():
    plan = plan_exact(list(range(50)), [*range(20), 99, *range(21, 50)])
    assert (plan.kept, plan.shifted, plan.computed) == (20, 0, 30)
