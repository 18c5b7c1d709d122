"""Figures of what VS Code showed, on written states."""

import pytest

from benchmarks.vscode_screen.__main__ import keys_of
from benchmarks.vscode_screen.seen import State, seen


def test_text_counts_from_the_key_after_which_it_came():
    states = [
        State(0, "", ""),
        State(100, "r", ""),
        State(160, "r", "eturn"),
        State(220, "re", "turn"),
        State(340, "rx", ""),
    ]
    found = seen(states)
    assert (found.keys, found.with_text, found.waits_ms, found.flickers) == (3, 2, (60,), ())


@pytest.mark.parametrize(
    ("before", "hidden", "again", "is_flicker"),
    [
        (("con", "nect"), ("con", ""), ("con", "nect"), True),
        (("con", "nect"), ("conn", ""), ("conn", "ect(path)"), True),
        (("con", "nect"), ("connect", ""), ("connect", "(path)"), False),
        (("con", "nect"), ("conf", ""), ("conf", "ig"), False),
        (("for", " x in y:\n    f"), ("for", ""), ("for", " x in y:\n    f"), False),
    ],
    ids=["the same", "longer", "typed to its end", "another text", "lines below"],
)
def test_a_flicker_is_a_text_that_comes_back(before, hidden, again, is_flicker):
    states = [State(at, *one) for at, one in enumerate([before, hidden, again])]
    assert bool(seen(states).flickers) is is_flicker


def test_a_line_end_comes_with_its_indentation():
    assert list(keys_of("\tif a:\n\t\tb\n")) == ["\t", *"if a:", "\n\t\t", "b", "\n"]
