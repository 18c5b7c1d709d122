import pytest

from completion.syntax.line_roles import continues_block, opens_words


@pytest.mark.parametrize("line", ["x " * 200_000, "(" * 400_000, "a = " * 100_000, "def " * 100_000])
@pytest.mark.parametrize("language", ["ruby", "julia", "elixir", "lua", "vim"])
def test_a_long_line_is_read_in_linear_time(line, language):
    # A search that begins again at each character takes longer than the time limit of a test.
    assert not opens_words(line + "end", language)
    assert not continues_block("elsewhere", line, language)


@pytest.mark.parametrize(
    ("head", "clause", "continues"),
    [
        ("x = case y", "when 1", True),
        ("x ||= begin", "rescue", True),
        ("x = [1]", "when 1", False),
    ],
)
def test_a_clause_continues_the_statement_that_is_assigned(head, clause, continues):
    assert continues_block(clause, head, "ruby") is continues
