"""Figures of what an editor showed, on written states."""

import pytest

from benchmarks.editor_latency.neovim_driver import COUNT_GROUP, GHOST_GROUP, Screen
from benchmarks.screen.__main__ import report
from benchmarks.screen.neovim import States
from benchmarks.screen.seen import State, seen
from benchmarks.screen.typist import keys_of


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


def test_a_state_of_neovim_is_kept_when_the_cursors_line_or_the_suggestion_changes():
    screen, states = Screen(20, 2), States()
    screen.grid_resize(1, 20, 2)
    screen.hl_attr_define(7, {}, {}, [{"hi_name": GHOST_GROUP}])
    states.note(screen)
    screen.grid_line(1, 0, 0, [["f"], ["o"], ["o", 7], ["(", 7], [")", 0]])
    states.note(screen)
    screen.hl_attr_define(8, {}, {}, [{"hi_name": COUNT_GROUP}])
    screen.grid_line(1, 0, 17, [["1", 8], ["/"], ["2"]])
    screen.grid_line(1, 1, 0, [["x"]])
    states.note(screen)
    screen.grid_line(1, 0, 2, [[" "] for _ in range(18)])
    screen.grid_cursor_goto(1, 0, 3)
    states.note(screen)
    assert [(state.line, state.text) for state in states] == [("", ""), ("fo)", "o("), ("fo ", "")]


def test_an_editor_that_showed_nothing_has_no_keys_and_no_shares(capsys):
    found = report({"a": seen([]), "b": seen([State(0, "", "")])})
    assert (found["sessions"], found["keys"], found["keys_with_text"]) == (2, 0, None)
