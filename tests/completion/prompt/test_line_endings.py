"""Suggestions get the line ends of their document, and what counts their characters still fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion.prompt.line_endings import restored
from completion.request import CompletionRequest, Suggestion

CRLF = CompletionRequest("a = 1\r\nx = ")
TOKENS = st.lists(st.sampled_from(["a", " ", "\n", ":\n    ", "é", "\n\n", "bc"]), min_size=1, max_size=12)


def suggestion_of(tokens):
    ends = tuple((sum(map(len, tokens[: count + 1])), -0.1 * count) for count in range(len(tokens)))
    return Suggestion("".join(tokens), ends=ends, pieces=tuple(("model", token) for token in tokens))


def with_crlf(text):
    return text.replace("\n", "\r\n")


@given(TOKENS)
def test_every_token_of_a_crlf_document_ends_where_it_does_with_plain_line_feeds(tokens):
    plain = suggestion_of(tokens)
    found = restored(plain, CRLF)
    assert found.text == with_crlf(plain.text)
    assert [found.text[:end] for end, _ in found.ends] == [with_crlf(plain.text[:end]) for end, _ in plain.ends]
    assert [value for _, value in found.ends] == [value for _, value in plain.ends]
    assert found.pieces == tuple((name, with_crlf(piece)) for name, piece in plain.pieces)


def test_a_crlf_of_the_model_stays_one_line_end_and_no_token_ends_inside_it():
    found = restored(suggestion_of(["a", "\r", "\n", "b\n", "c"]), CRLF)
    assert found.text == "a\r\nb\r\nc"
    assert [end for end, _ in found.ends] == [1, 3, 6, 7]


@pytest.mark.parametrize("prefix", ["a = 1\nx = ", "x = "])
def test_a_document_without_crlf_keeps_the_text_as_it_is(prefix):
    plain = suggestion_of(["a\n", "b"])
    assert restored(plain, CompletionRequest(prefix)) is plain
