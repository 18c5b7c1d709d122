"""Facts of the parse tree about a change, which parses only what the change touches."""

import pytest

from completion.edits import NextEditRequest
from completion.next_edit.edited_nodes import syntax_of_changes
from completion.next_edit.rewrites import Candidate

LINES = ["import os", "", "def f(größe):", "    return os.path", "", "value = f(1)"]


def breaks(lines: list[str], line: int, count: int, *new: str) -> bool:
    """Return whether a change adds errors."""
    change = Candidate(line, tuple(lines[line : line + count]), new, frozenset(), 0)
    (facts,) = syntax_of_changes(NextEditRequest(tuple(lines), (), "python"), [change])
    return facts.breaks


@pytest.mark.parametrize(
    ("line", "count", "new", "expected"),
    [
        (3, 1, ["    return os.name"], False),
        (3, 1, ["    return os.("], True),
        (2, 1, ["def f(größe:"], True),
        (5, 1, ["value = f(2)", "other = f(3)"], False),
        (5, 1, ["value = f(2"], True),
        (5, 1, [], False),
        (2, 2, [], False),
        (0, 1, ["import (os"], True),
    ],
)
def test_a_change_breaks_a_document_if_it_adds_errors(line, count, new, expected):
    assert breaks(LINES, line, count, *new) is expected
    assert breaks(["# größe", *LINES], line + 1, count, *new) is expected
