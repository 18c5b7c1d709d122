"""Heredocs: text between a line with `<<END` and a line with `END`."""

import pytest

from completion.syntax.brackets import scan


@pytest.mark.parametrize(
    ("language", "text", "inside"),
    [
        ("shellscript", "cat <<EOF | f\na\nEOF\nb", False),
        ("shellscript", "cat <<-'EOF'\na", True),
        ("shellscript", "cat <<EOF", False),
        ("shellscript", "a=$((b << c))\nd", False),
        ("shellscript", "read <<<END\nd", False),
        ("ruby", "a = f(<<~B)\n  c\nB\nd << e\n", False),
        ("python", "a <<B\nc", False),
    ],
)
def test_a_text_ends_inside_a_heredoc_or_not(language, text, inside):
    assert scan(text, language).in_heredoc is inside


@pytest.mark.parametrize(
    ("text", "opened"),
    [
        ("f <<A\nit's (\nA\ng <<B\n{ \"a\": it's # [\n", "{["),
        ("f <<A | (\n'\nA\n[", "(["),
        ("echo '<<A'\n(", "("),
        ("# <<A\n(", "("),
        ('f "$(cat <<A\n it\'s "\nA\n)" (', "("),
    ],
)
def test_a_whole_heredoc_has_no_brackets_and_one_at_the_end_has_no_quotes(text, opened):
    assert "".join(bracket.character for bracket in scan(text, "shellscript").open) == opened
