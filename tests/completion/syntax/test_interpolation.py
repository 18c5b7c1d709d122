"""Strings and brackets are followed through code in strings."""

import pytest

from completion.syntax.interpolation import closed_by, waiting_closers


@pytest.mark.parametrize(
    ("language", "line", "expected"),
    [
        ("shellscript", 'a "$(b ', ('"', ")")),
        ("shellscript", 'a "$(b "$c" ', ('"', ")")),
        ("shellscript", 'a "$(b "$(c "', ('"', ")", '"', ")", '"')),
        ("shellscript", 'a "$(b)" "', ()),
        ("shellscript", "a '$(b ", ()),
        ("shellscript", 'a "\\$(b ', ()),
        ("ruby", 'f("#{a[', (")", '"', "}", "]")),
        ("ruby", "f(#{a", ()),
        ("kotlin", 'f("${a["', (")", '"', "}", "]", '"')),
        ("kotlin", 'f("$(a', ()),
        ("swift", 'print("\\(a["', (")", '"', ")", "]", '"')),
        ("python", 'f"{a["', ()),
    ],
)
def test_what_is_open_around_code_in_a_string(language, line, expected):
    assert waiting_closers(line, language) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [('"$b"', ""), ('"$b")', ")"), ('"$b")"', ')"'), ("b) $(c", ""), ('b)" "c', ")"), ("(b) \\)", "")],
)
def test_what_a_text_closes_without_opening_it_again(text, expected):
    assert closed_by(text, ('"', ")"), "shellscript") == expected
