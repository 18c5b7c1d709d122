"""Heredocs: text between a line with `<<END` and a line with `END`."""

import pytest

from completion.syntax.brackets import scan, without_heredocs


@pytest.mark.parametrize(
    ("language", "text", "left", "inside"),
    [
        ("shellscript", "cat <<EOF | f\na\nEOF\nb", "cat <<EOF | f\nb", False),
        ("shellscript", "cat <<-'EOF'\na", "cat <<-'EOF'\na", True),
        ("shellscript", "cat <<EOF", "cat <<EOF", False),
        ("shellscript", "a=$((b << c))\nd", "a=$((b << c))\nd", False),
        ("shellscript", "read <<<END\nd", "read <<<END\nd", False),
        ("ruby", "a = f(<<~B)\n  c\nB\nd << e\n", "a = f(<<~B)\nd << e\n", False),
        ("python", "a <<B\nc", "a <<B\nc", False),
    ],
)
def test_the_lines_of_heredocs_go(language, text, left, inside):
    assert (without_heredocs(text, language), scan(text, language).in_heredoc) == (left, inside)


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
