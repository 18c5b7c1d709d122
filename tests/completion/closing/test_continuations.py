import pytest

from completion.closing.continuations import continuations


@pytest.mark.parametrize(
    ("line", "needs_else"),
    [
        ("x = a if b", True),
        ("f(a, b if c", True),
        ("return a if b", True),
        ("x = a if b else c", False),
        ("x = a if b else c if d", True),
        ("if a", False),
    ],
)
def test_a_conditional_expression_in_python_needs_its_else(line, needs_else):
    assert (" else _" in continuations(line, "python")) is needs_else


@pytest.mark.parametrize("line", ["= " * 200_000, "a = if else " * 40_000, "return if " * 40_000])
def test_a_long_line_is_read_in_linear_time(line):
    # A search that begins again at each character takes longer than the time limit of a test.
    assert continuations(line, "python")
