"""Heredocs: text between a line with `<<END` and a line with `END`."""

import pytest

from completion.syntax.heredocs import without_heredocs, without_quotes_in_heredocs


@pytest.mark.parametrize(
    ("language", "text", "left", "inside"),
    [
        ("shellscript", "cat <<EOF | f\na\nEOF\nb", "cat <<EOF | f\nb", False),
        ("shellscript", "cat <<-'EOF'\na", "cat <<-'EOF'", True),
        ("shellscript", "cat <<EOF", "cat <<EOF", True),
        ("shellscript", "a=$((b << c))\nd", "a=$((b << c))\nd", False),
        ("shellscript", "read <<<END\nd", "read <<<END\nd", False),
        ("ruby", "a = f(<<~B)\n  c\nB\nd << e\n", "a = f(<<~B)\nd << e\n", False),
        ("python", "a <<B\nc", "a <<B\nc", False),
    ],
)
def test_the_lines_of_heredocs_go(language, text, left, inside):
    assert without_heredocs(text, language) == (left, inside)


def test_a_whole_heredoc_has_no_brackets_and_one_at_the_end_has_no_quotes():
    text = "f <<A\nit's (\nA\ng <<B\n{ \"a\": it's # [\n"
    expected = "f <<A\n      \nA\ng <<B\n{  a : it s   [\n"
    assert without_quotes_in_heredocs(text, "shellscript") == expected
