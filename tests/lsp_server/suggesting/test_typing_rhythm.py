"""The wait after a keystroke follows the user's pauses and the engine's latency, within bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.suggesting.typing_rhythm import LONG_PAUSE_S, MIN_PAUSES, WAIT_FACTORS, TypingRhythm


def typed(pauses, latency_s=0.05):
    rhythm, now = TypingRhythm(), 0.0
    for pause in [0.0, *pauses]:
        now += pause
        rhythm.key(now)
    for _ in range(40):
        rhythm.answered(latency_s)
    return rhythm


def test_the_wait_is_the_configured_one_until_enough_pauses_are_known():
    assert typed([0.1] * (MIN_PAUSES - 1)).wait_s(0.06) == 0.06


def test_there_is_no_wait_for_a_slow_typist_with_a_fast_engine():
    assert typed([0.5] * 40).wait_s(0.06) == 0.0


def test_the_wait_is_longer_than_the_pauses_in_a_burst_of_keys():
    rhythm = typed([*[0.1] * 14, 1.5] * 8, latency_s=0.5)
    assert rhythm.wait_s(0.06) == pytest.approx(0.12)


def test_there_is_no_wait_in_steady_typing_if_the_answer_comes_after_the_next_key():
    assert typed([0.12] * 40, latency_s=0.15).wait_s(0.06) == 0.0


def test_the_wait_is_long_in_steady_typing_if_the_answer_comes_after_many_keys():
    assert typed([0.12] * 40, latency_s=0.5).wait_s(0.06) == pytest.approx(WAIT_FACTORS[-1] * 0.06)


def test_the_wait_is_longer_for_a_slower_engine():
    pauses = [*[0.1, 0.12, 0.3, 0.15] * 4, 0.9] * 7
    assert typed(pauses, 0.02).wait_s(0.06) < typed(pauses, 1.0).wait_s(0.06)


def test_a_pause_in_which_the_user_thinks_does_not_count_as_long_enough_for_a_slow_engine():
    assert typed([10 * LONG_PAUSE_S] * 40, 5 * LONG_PAUSE_S).wait_s(0.06) == pytest.approx(WAIT_FACTORS[-1] * 0.06)


def test_old_pauses_are_forgotten():
    rhythm = typed([0.1] * 200 + [1.0] * 200)
    assert rhythm.wait_s(0.06) == 0.0


@given(st.lists(st.floats(0, 100), max_size=60), st.floats(0, 5), st.floats(0, 1))
def test_the_wait_stays_within_its_bounds(pauses, latency_s, configured_s):
    assert 0 <= typed(pauses, latency_s).wait_s(configured_s) <= WAIT_FACTORS[-1] * configured_s
