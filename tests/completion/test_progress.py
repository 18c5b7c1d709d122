"""Progress sentences say how long work still takes, once that is known."""

from hypothesis import given
from hypothesis import strategies as st

from completion.progress import TimeLeft, share


def test_the_time_left_is_that_of_what_is_finished_and_is_unknown_at_first():
    now = [0.0]
    left = TimeLeft(lambda: now[0])
    assert left.added("Packing.", 0.5) == "Packing."
    now[0] = 30.0
    assert left.added("Packing.", 0.5) == "Packing (about 30 s left)"
    assert left.added("Packing.", 0.25) == "Packing (about 30 s left)"
    now[0] = 120.0
    assert left.added("Packing.", 0.1) == "Packing (about 2 minutes left)"
    assert TimeLeft(lambda: 9.0).added("Reading.", 0.0) == "Reading."


@given(st.lists(st.floats(0, 1)), st.floats(0, 0.5), st.floats(0.5, 1))
def test_the_progress_of_a_step_stays_in_its_share_of_the_whole(fractions, begin, end):
    seen = []
    progress = share(lambda _, fraction: seen.append(fraction), begin, end)
    for fraction in sorted(fractions):
        progress("", fraction)
    assert seen == sorted(seen)
    assert all(begin <= fraction <= end + 1e-12 for fraction in seen)
