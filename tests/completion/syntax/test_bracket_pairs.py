"""Matching openers before the cursor with closers after it."""

import pytest

from completion.syntax.bracket_pairs import open_at_cursor
from completion.syntax.brackets import scan
from tests.completion.work import lines_run


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("foo(bar(", "))\n", [("(", 1), ("(", 0)]),
        ("foo(bar(", ")\n", [("(", None), ("(", 0)]),
        ("x.find((q", "\n)\n", [("(", 1), ("(", None)]),
        ("f() {\n  if (a) {\n", "\n}\n", [("{", 1), ("{", None)]),
        ("f() {\n  if (a) {\n", "\n  }\n}\n", [("{", 5), ("{", 3)]),
        ("a(\n  b[", "]\n", [("(", None), ("[", 0)]),
        # the header of the class goes on in a second line, so the closer below is the class's
        ("class A\n    extends B {\n  f() {\n", "\n}\n", [("{", 1), ("{", None)]),
        ("f() {\n  if (a &&\n      b) {\n    for (;;) {\n", "\n  }\n}\n", [("{", 5), ("{", 3), ("{", None)]),
        ("class A\n    extends B {\n  f() {\n", "\n  }\n}\n", [("{", 5), ("{", 3)]),
        # the block around is not indented, so the closer below may be its own
        ("namespace a {\nvoid f() {", "\n\nvoid g() {\n}\n}\n", [("{", 15), ("{", None)]),
        ("namespace a {\nvoid f() {\n  ", "\nint b;\n}\n", [("{", 8), ("{", None)]),
        ("namespace a {\nvoid f() {", "\n\n}\n", [("{", 2), ("{", None)]),
        ("namespace a {\nvoid f() {", "\n  b();\n}\n", [("{", None), ("{", 8)]),
        ("namespace a {\nvoid f() {", "\n}\n}\n", [("{", 3), ("{", 1)]),
        ("namespace a {\nvoid f() {\n  ", "\n  b();\n#if C\n}\n\nint d;\n}\n", [("{", 24), ("{", 14)]),
        ("switch (a) {\ncase 1: {\n  ", "\n}\ncase 2: {\n}\n}\n", [("{", 15), ("{", 1)]),
        ("a\n    .b(() {\n      c(() {", "\n    });\n", [("(", 6), ("{", 5), ("(", None), ("{", None)]),
    ],
)
def test_openers_are_matched_with_the_closers_after_the_cursor(before, after, expected):
    pairs = open_at_cursor(scan(before, "javascript"), scan(after, "javascript"), before, after)
    assert [(pair.character, pair.closed_at) for pair in pairs] == expected


@pytest.mark.parametrize("closers", [")", "]"], ids=["fitting", "not fitting"])
def test_deep_brackets_take_linear_work(closers):
    def work(depth):
        before, after = "(" * depth, (closers + "\n") * depth
        return lines_run(
            lambda: (
                open_at_cursor(scan(before, "java"), scan(after, "java"), before, after)
                and scan(before + after, "java")
            )
        )

    assert work(4000) < 2.5 * work(2000)
