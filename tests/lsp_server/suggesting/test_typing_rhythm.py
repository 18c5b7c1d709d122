"""The wait after a key follows the user's pauses and the engine's latency, within bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.suggesting.typing_rhythm import FEWEST, STEPS, TypingRhythm


def typed(pauses, latency_s=0.05):
    rhythm, now = TypingRhythm(), 0.0
    for pause in [0.0, *pauses]:
        now += pause
        rhythm.key(now)
    for _ in range(40):
        rhythm.answered(latency_s)
    return rhythm


def test_the_configured_wait_until_enough_is_known():
    assert typed([0.1] * (FEWEST - 1)).wait_s(0.06) == 0.06


def test_a_slow_typist_with_a_quick_engine_is_not_made_to_wait():
    assert typed([0.5] * 40).wait_s(0.06) == 0.0


def test_a_burst_is_waited_out():
    rhythm = typed([0.1, 0.1, 0.1, 1.5] * 20, latency_s=0.15)
    assert rhythm.wait_s(0.06) == pytest.approx(0.12)


def test_a_slower_engine_is_asked_later():
    pauses = [0.1, 0.12, 0.3, 0.15, 0.9] * 20
    assert typed(pauses, 0.02).wait_s(0.06) < typed(pauses, 0.5).wait_s(0.06)


def test_old_habits_are_forgotten():
    rhythm = typed([0.1] * 200 + [1.0] * 200)
    assert rhythm.wait_s(0.06) == 0.0


@given(st.lists(st.floats(0, 100), max_size=60), st.floats(0, 5), st.floats(0, 1))
def test_the_wait_stays_within_its_bounds(pauses, latency_s, configured_s):
    assert 0 <= typed(pauses, latency_s).wait_s(configured_s) <= STEPS[-1] * configured_s
