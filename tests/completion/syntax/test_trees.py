"""What is counted in a parse tree."""

import pytest

from completion.syntax.trees import error_count, parse


@pytest.mark.parametrize(
    ("language", "text", "count"),
    [
        ("python", "x = f(1)\n", 0),
        ("python", "x = f(1\n", 1),
        ("python", "$", 2),  # an ERROR node in another, without children
        ("go", "= x", 1),  # what is missing is missing at the start of the text
        ("typescript", ",x}", 2),
        ("c", "int f(void) { return x", 1),
    ],
)
def test_each_erroneous_and_each_missing_node_is_an_error(language, text, count):
    assert error_count(parse(text, language)) == count
