"""Stop strings: where a text ends, and that each character of it is read once."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion.host.dialects import reply_text
from completion.host.dialects.reply_text import StopStrings

WORDS = st.text(alphabet="ab", max_size=6)


def expected(text, stops):
    """Return what a search of the whole text finds."""
    found = [text.find(stop) for stop in stops if stop and stop in text]
    if found:
        return text[: min(found)], True
    begun = [length for stop in stops for length in range(1, len(stop)) if text.endswith(stop[:length])]
    return text[: len(text) - max(begun, default=0)], False


@given(st.lists(WORDS, max_size=3), st.lists(WORDS, max_size=8))
def test_a_growing_text_ends_where_a_search_of_all_of_it_says(stops, pieces):
    search, text = StopStrings(stops), ""
    for piece in pieces:
        text += piece
        assert search.text_before(text, done=False) == expected(text, stops)
        assert search.text_before(text, done=True)[1] == expected(text, stops)[1]


@given(st.lists(WORDS, max_size=3), st.lists(WORDS, max_size=5))
def test_a_text_that_another_takes_the_place_of_is_searched_anew(stops, texts):
    search = StopStrings(stops)
    for text in texts:
        assert search.text_before(text, done=False) == expected(text, stops)


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("stop", ["\n", "\r\n", "\nc"])
def test_a_stop_string_is_found_in_a_document_whose_lines_end_with_crlf(stop, done):
    assert StopStrings([stop]).text_before("2\r\nc", done=done) == ("2", True)
    assert StopStrings([stop]).text_before("2\r", done=False) == ("2", False)


def test_the_work_grows_with_the_text_and_not_with_its_square():
    """1,024 tokens and 64 stop strings of 1 kB took 8.7 s of the event loop."""

    def work(tokens):
        lines = 0

        def count(frame, _event, _argument):
            nonlocal lines
            lines += frame.f_code.co_filename == reply_text.__file__
            return count

        search, text = StopStrings([f"{'a' * 1000}{number}" for number in range(64)]), ""
        sys.settrace(count)
        try:
            for _ in range(tokens):
                text += "aab"
                search.text_before(text, done=False)
        finally:
            sys.settrace(None)
        return lines

    assert work(200) < 2.1 * work(100)
