"""The first line of a growing block: complete, closed, with its body; it stays the same however the block goes on."""

import re

import pytest

from completion.ending.context import Context
from completion.ending.extent import first_line
from completion.prompt.line_endings import restored
from completion.request import CompletionRequest, Mode, Suggestion

# What is before the cursor, the first line of the block, and how the block goes on.
BLOCKS = [
    ("python", "class Colour(Enum):\n    RED = 1\n    ", "GREEN = 2", "\n    BLUE = 3"),
    ("python", "def f(x):", "\n    a = g(1,\n          2)", "\n    return a"),
    ("python", "def f(x):\n    ", "if x:\n        return 1\n    else:\n        return 2", "\n    b = 1"),
    ("python", "class A:", "\n\n    def f(self):\n        return 1", "\n\n    def g(self):"),
    ("python", "def f():\n    ", '"""Says\n\n    more."""', "\n    return 1"),
    ("javascript", "function f(x) {", "\n  if (x) {\n    return 1;\n  }", "\n  return 2;"),
    ("typescript", "class A {\n  ", "// The name.\n  name = g({\n    a: 1,\n  });", "\n  age = 1;"),
    ("go", "func f() {\n\t", "for _, x := range xs {\n\t\tg(x)\n\t}", "\n\th()"),
    ("rust", "fn f() {\n    ", "let a = vec![\n        1,\n    ];", "\n    a"),
    ("ruby", "def f(x)\n  ", "if x\n    1\n  end", "\n  2"),
]


@pytest.mark.parametrize(("language", "before", "first", "rest"), BLOCKS)
def test_the_first_line_is_found_when_it_is_complete_and_stays(language, before, first, rest):
    context = Context.of(before, "\n", language, Mode.BLOCK)
    words = re.findall(r"\w+|\W", first + rest)
    ends = [first_line("".join(words[:count]), context) for count in range(len(words) + 1)]
    assert set(ends) == {0, len(first)}
    assert ends == sorted(ends)


def test_a_line_has_none():
    assert first_line("a = 1\n    b = 2", Context.of("    ", "\n", "python", Mode.LINE)) == 0


def test_it_counts_the_line_ends_of_the_document():
    request = CompletionRequest("class A:\r\n    ")
    whole = restored(Suggestion("if x:\n        y\n    z", line=len("if x:\n        y")), request)
    assert whole.text[: whole.line] == "if x:\r\n        y"
