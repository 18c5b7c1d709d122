"""What a user has just deleted at the cursor, and what the edits before make of it, whatever the blanks are."""

from __future__ import annotations

import pytest

from completion.ending.context import Context
from completion.next_edit.candidates import replaced_lines
from completion.request import Mode

DELETED = "@@\n-import os\n+import sys\n@@\n-def area(a, b):\n-    return a * b\n-\n"
RENAMED = "@@\n-    total = count(rows)\n+    total = tally(rows)\n@@\n-    print(count(columns), end='')\n"


def replaced(prefix, suffix="", history=DELETED):
    return replaced_lines(history, Context.of(prefix, suffix, "python", Mode.LINE))


@pytest.mark.parametrize(
    ("prefix", "text", "suffix"),
    [
        ("", "def area(a, b):", ""),
        ("import sys\n", "def area(a, b):", "\nprint()"),
        ("def ar", "ea(a, b):", ""),
        ("def area(", "a", ", b):\n"),
        ("def area(", "a, b):", ", b):\n"),
        ("\tdef", "  area(a,b):  ", ""),
        ("", "def area(a, b):\n    return b * a", ""),
        ("", "def area(a, b):\n\n", ""),
    ],
)
def test_a_text_that_brings_the_first_deleted_line_back_is_left_open_from_its_start(prefix, text, suffix):
    lines = replaced(prefix, suffix)
    assert lines.are_back(text)
    assert all(lines.leave_open(text[:end]) for end in range(len(text) + 1))


@pytest.mark.parametrize(
    ("prefix", "text", "suffix"),
    [
        ("", "def area(a, b, c):", ""),
        ("def area(b, a):\n    ret", "urn a * b", ""),
        ("def area(a, b):", "", ""),
        ("async ", "def area(a, b):", ""),
        ("", "import os", ""),
        ("", "def area(a, b):", "  # of a rectangle"),
    ],
)
def test_a_text_that_does_not(prefix, text, suffix):
    assert not replaced(prefix, suffix).are_back(text)


def test_a_text_is_left_open_until_it_differs_from_the_deleted_line():
    assert replaced("").leave_open("def a")
    assert replaced("").leave_open("def area(a, b):\n    ret")
    assert not replaced("").leave_open("def area(a, b, ")
    assert not replaced("").leave_open("class A:\n    ret")
    assert not replaced("class ").leave_open("def a")


@pytest.mark.parametrize("history", ["", "@@\n-def area(a, b):\n+def area(a):\n", "@@\n+def area(a, b):\n", "@@\n-\n"])
def test_without_a_deletion_nothing_is_expected(history):
    lines = replaced("", "", history)
    for text in ("def area(a, b):", "def area(a):", "def", ""):
        assert not lines.are_back(text)
        assert not lines.are_followed(text)
        assert not lines.leave_open(text)


@pytest.mark.parametrize(
    ("prefix", "text", "suffix"),
    [
        ("    pri", "nt(tally(columns), end='')", ""),
        ("", "    print(tally(columns),end='')", "\nx = 1"),
        ("    print(t", "ally", "(columns), end='')"),
        ("    print(t", "ally(columns), end='')", "(columns), end='')"),
    ],
)
def test_what_the_edits_before_make_of_a_deleted_line_is_expected(prefix, text, suffix):
    lines = replaced(prefix, suffix, RENAMED)
    assert lines.are_followed(text)
    for end in range(len(text)):
        assert lines.may_be_followed(text[:end])
    assert not lines.are_followed(text + "x")
    assert not lines.may_be_followed(text + "x")


def test_what_differs_from_an_expected_line_is_left_open():
    lines = replaced("    print(", "", RENAMED)
    assert lines.are_back("count(columns), end='')")
    assert not lines.leave_open("tally(co")
    assert lines.leave_open("tally(rows")
    assert lines.leave_open("sum")


def test_a_line_that_can_no_longer_be_typed_is_not_expected():
    lines = replaced("    return ", "", RENAMED)
    assert not lines.may_be_followed("")
    assert not lines.leave_open("tally(rows)")
