"""Early stop: a hopeless attempt ends at the learned bounds, and the first attempt of a manual request never does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.early_stop import Sample, effect, learn, stop_at
from completion.decoding.output_text import OutputText
from completion.decoding.stop_rules import StopRules
from completion.ending.context import cursor_context
from completion.ending.early_stop import EarlyStop
from completion.request import CompletionRequest, StopReason

STOP = EarlyStop(((3, -1.0), (6, -0.5)))


def test_a_bound_applies_from_its_number_of_tokens_to_the_next():
    assert not STOP.is_hopeless(2, -10.0)
    assert STOP.is_hopeless(3, -3.1)
    assert not STOP.is_hopeless(5, -4.9)
    assert STOP.is_hopeless(6, -3.1)


def test_the_shipped_bounds_ascend():
    bounds = EarlyStop.shipped().bounds
    assert bounds
    assert list(bounds) == sorted(bounds)


@given(st.lists(st.floats(-5, 0), max_size=40))
def test_more_tokens_do_not_change_where_an_attempt_stops(log_probabilities):
    at = stop_at(STOP, log_probabilities)
    assert at is None or stop_at(STOP, log_probabilities[:at]) == at


def test_learned_bounds_stop_bad_attempts_and_keep_good_ones():
    good = [Sample(f"good {i}", (-0.1 - i / 1000,) * 10, good=True) for i in range(50)]
    bad = [Sample(f"bad {i}", (-2.0,) * 10, good=False) for i in range(10)]
    found = effect(learn(good + bad), good + bad)
    assert found["bad_stopped"] == 1.0
    assert found["good_lost"] <= 0.02
    assert found["tokens_saved"] > 0.1


def test_a_share_of_no_suggestions_is_none():
    assert effect(STOP, []) == {"suggestions": 0} | dict.fromkeys(
        ("stopped", "bad_stopped", "good_lost", "tokens_saved")
    )
    assert effect(STOP, [Sample("bad", (-2.0,) * 10, good=False)])["good_lost"] is None


@pytest.mark.parametrize(
    ("invoked", "filters", "stopped"), [(False, True, True), (True, True, False), (False, False, False)]
)
def test_neither_a_manual_request_nor_one_without_filters_stops_early(invoked, filters, stopped):
    request = CompletionRequest(prefix="x = ", suffix="\n", language="python", invoked=invoked, filters=filters)
    output = OutputText(0)
    for piece in (b"a", b"b", b"c", b"d"):
        output.extend(piece, "model")
    stop = StopRules(request, cursor_context(request)).unlikely_end(output, [-9.0] * 4)
    assert (stop is not None and stop.reason is StopReason.UNLIKELY) == stopped


@pytest.mark.parametrize("invoked", [False, True])
def test_a_branch_stops_early_only_if_the_first_attempt_is_likelier(invoked):
    rules = StopRules(request := CompletionRequest("x = ", "\n", "python", invoked=invoked), cursor_context(request))
    likely, unlikely = (rules.for_branch([each] * 6, 8) for each in (-0.1, -2.2))
    output = OutputText(0)
    for _ in range(4):
        output.extend(b" a", "model")
    for other, abandoned in ((likely, True), (unlikely, False)):
        assert (other.unlikely_end(output, [-2.1] * 4) is not None) is abandoned
        assert other.soon_unlikely(1, -4.0) is abandoned
    assert not likely.soon_unlikely(1, -0.5)
    assert (rules.unlikely_end(output, [-2.1] * 4) is None) is invoked
