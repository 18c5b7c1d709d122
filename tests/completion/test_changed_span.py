"""The changed span of two versions of a text."""

from hypothesis import given
from hypothesis import strategies as st

from completion.edits import changed_span, common_length

TEXTS = st.text(st.sampled_from("ab\n"), max_size=12)


def test_the_common_start_of_text_and_of_bytes():
    assert common_length("value = 1", "value = 2") == 8
    assert common_length(b"ab", b"abc") == 2
    assert common_length("", "a") == 0


def test_an_insertion_into_equal_characters_does_not_overlap_itself():
    assert changed_span("aaa", "aaaa") == (3, 3, 4)


@given(TEXTS, TEXTS)
def test_replacing_the_span_gives_the_new_text(old, new):
    start, old_end, new_end = changed_span(old, new)
    assert old[:start] + new[start:new_end] + old[old_end:] == new
    assert start <= min(old_end, new_end)
