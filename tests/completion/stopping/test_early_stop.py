"""A hopeless continuation is given up at the same token whoever guessed its tokens; a hopeful one never."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.early_stop import Sample, effect, learn, stop_at
from completion.request import CompletionRequest, StopReason
from completion.stopping.early_stop import EarlyStop
from completion.stopping.mode import cursor_context
from completion.stopping.output_text import OutputText
from completion.stopping.rules import StopRules

STOP = EarlyStop(((3, -1.0), (6, -0.5)))


def test_a_bound_counts_from_its_number_of_tokens_to_the_next():
    assert not STOP.hopeless(2, -10.0)
    assert STOP.hopeless(3, -3.1)
    assert not STOP.hopeless(5, -4.9)
    assert STOP.hopeless(6, -3.1)


def test_bounds_survive_writing_and_reading():
    assert EarlyStop.from_json(STOP.to_json()) == STOP


def test_the_shipped_bounds_ascend():
    bounds = EarlyStop.shipped().bounds
    assert bounds
    assert list(bounds) == sorted(bounds)


@given(st.lists(st.floats(-5, 0), max_size=40))
def test_a_continuation_is_given_up_once(log_probabilities):
    at = stop_at(STOP, log_probabilities)
    assert at is None or stop_at(STOP, log_probabilities[:at]) == at


def test_learned_bounds_stop_what_is_unlike_everything_good():
    good = [Sample(f"good {i}", (-0.1 - i / 1000,) * 10, good=True) for i in range(50)]
    bad = [Sample(f"bad {i}", (-2.0,) * 10, good=False) for i in range(10)]
    found = effect(learn(good + bad), good + bad)
    assert found["bad_stopped"] == 1.0
    assert found["good_lost"] <= 0.02
    assert found["tokens_saved"] > 0.1


@pytest.mark.parametrize(
    ("invoked", "filters", "given_up"), [(False, True, True), (True, True, False), (False, False, False)]
)
def test_what_a_key_asked_for_is_not_given_up(invoked, filters, given_up):
    request = CompletionRequest(prefix="x = ", suffix="\n", language="python", invoked=invoked, filters=filters)
    output = OutputText(0)
    for piece in (b"a", b"b", b"c", b"d"):
        output.extend(piece, "model")
    stop = StopRules(request, cursor_context(request)).unlikely_end(output, [-9.0] * 4)
    assert (stop is not None and stop.reason is StopReason.UNLIKELY) == given_up


@pytest.mark.parametrize("invoked", [False, True])
def test_another_text_is_given_up_where_the_first_one_is_likelier(invoked):
    rules = StopRules(request := CompletionRequest("x = ", "\n", "python", invoked=invoked), cursor_context(request))
    likely, unlikely = (rules.beside([each] * 6, 8) for each in (-0.1, -2.2))
    output = OutputText(0)
    for _ in range(4):
        output.extend(b" a", "model")
    for other, is_given_up in ((likely, True), (unlikely, False)):
        assert (other.unlikely_end(output, [-2.1] * 4) is not None) is is_given_up
        assert other.soon_unlikely(1, -4.0) is is_given_up
    assert not likely.soon_unlikely(1, -0.5)
    assert (rules.unlikely_end(output, [-2.1] * 4) is None) is invoked
