"""JSON from other programs is refused by its depth before it is parsed, whatever its strings contain."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion.nesting import MAX_DEPTH, check_nesting

texts = st.text(alphabet='[]{}"\\a\n', max_size=4)
values = st.recursive(
    st.none() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
)


def _depth(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(_depth, inner), default=0)


@given(values, st.integers(MAX_DEPTH - 4, MAX_DEPTH + 2), st.booleans())
def test_exactly_what_is_nested_deeper_than_allowed_is_refused(value, levels, as_key):
    for _ in range(levels):
        value = {"a": [], "b": value} if as_key else ["]", value]
    text = json.dumps(value).encode()
    if _depth(value) > MAX_DEPTH:
        with pytest.raises(ValueError, match="levels deep"):
            check_nesting(text)
    else:
        check_nesting(text)


@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"a":' * 3000, b'["\\\\",' * 500, b'[1,{"a":' * 80])
def test_what_is_never_closed_is_refused_as_well(text):
    with pytest.raises(ValueError, match="levels deep"):
        check_nesting(text)


@pytest.mark.parametrize("text", [b"]" * 1000 + b"[" * 100, b'"' + b"[" * 1000, b"[]" * 1000, b"", b'\\"[' * 100])
def test_what_the_parser_refuses_at_once_or_is_flat_is_left_to_it(text):
    check_nesting(text)
