"""What a user has just deleted is found in the edit history, whatever its blanks are."""

from __future__ import annotations

import pytest

from completion.postprocess import Context
from completion.request import Mode
from completion.stopping.deleted_lines import DeletedLines

HISTORY = "@@\n-import os\n+import sys\n@@\n-def area(a, b):\n-    return a * b\n-\n"


def deleted(prefix, suffix="", history=HISTORY):
    return DeletedLines.of(history, Context.of(prefix, suffix, "python", Mode.LINE))


@pytest.mark.parametrize(
    ("prefix", "text", "suffix"),
    [
        ("", "def area(a, b):", ""),
        ("import sys\n", "def area(a, b):", "\nprint()"),
        ("def ar", "ea(a, b):", ""),
        ("def area(", "a", ", b):\n"),
        ("def area(", "a, b):", ", b):\n"),
        ("\tdef", "  area(a,b):  ", ""),
        ("", "def area(a, b):\n    return a * b", ""),
        ("", "def area(a, b):\n\n", ""),
    ],
)
def test_a_text_that_brings_deleted_lines_back(prefix, text, suffix):
    found = deleted(prefix, suffix)
    assert found.are(text)
    assert all(found.start_with(text[:end]) for end in range(len(text) + 1))


@pytest.mark.parametrize(
    ("prefix", "text", "suffix"),
    [
        ("", "def area(a, b, c):", ""),
        ("", "def area(a, b):\n    return b * a", ""),
        ("def area(a, b):", "", ""),
        ("async ", "def area(a, b):", ""),
        ("", "import os", ""),
        ("", "def area(a, b):", "  # of a rectangle"),
    ],
)
def test_a_text_that_does_not(prefix, text, suffix):
    assert not deleted(prefix, suffix).are(text)


def test_a_text_that_may_still_become_one_that_does():
    assert deleted("").start_with("def a")
    assert deleted("").start_with("def area(a, b):\n    ret")
    assert not deleted("").start_with("def area(a, b, ")
    assert not deleted("").start_with("class A:\n    ret")
    assert not deleted("class ").start_with("def a")


@pytest.mark.parametrize("history", ["", "@@\n-def area(a, b):\n+def area(a):\n", "@@\n+def area(a, b):\n", "@@\n-\n"])
def test_without_a_deletion_nothing_is_deleted(history):
    found = deleted("", "", history)
    assert not found.are("def area(a, b):")
    assert not found.start_with("def")
    assert not found.start_with("")
