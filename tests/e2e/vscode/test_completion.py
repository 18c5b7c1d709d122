"""Real VS Code, real server, real default model: what a person sees and does at the cursor."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.vscode, pytest.mark.real_model]

MULTIPLY = "def add(a, b):\n    return a + b\n\n\ndef multiply(a, b):\n    "


def test_ghost_text_grows_while_it_is_generated_and_tab_accepts_it(edit):
    window = edit(MULTIPLY)
    window.type("re")
    window.wait_for_ghost(r"turn a \* b")
    grown = [ghost for ghost in window.ghosts_seen() if ghost]
    assert len(grown) > 1, "it appeared all at once"
    assert all("turn a * b".startswith(ghost) for ghost in grown)
    window.press("Tab")
    window.wait_for_line("    return a * b")
    window.wait_for_ghost("")
    assert " ms" in window.status()


def test_typing_what_is_shown_narrows_it(edit):
    window = edit(MULTIPLY)
    window.type("re")
    window.wait_for_ghost(r"turn a \* b")
    for typed, left in (("t", r"urn a \* b"), ("u", r"rn a \* b"), ("rn", r" a \* b")):
        window.type(typed)
        window.wait_for_ghost(left)
    window.press("Tab")
    window.wait_for_line("    return a * b")


def test_a_word_then_the_rest(edit):
    window = edit(MULTIPLY)
    window.type("re")
    window.wait_for_ghost(r"turn a \* b")
    window.press("Control+ArrowRight")
    window.wait_for_line("    return")
    window.wait_for_ghost(r" a \* b")
    window.press("Tab")
    window.wait_for_line("    return a * b")


def test_escape_puts_it_away_and_leaves_the_text(edit):
    window = edit(MULTIPLY)
    window.type("re")
    window.wait_for_ghost(r"turn a \* b")
    window.press("Escape")
    window.wait_for_ghost("")
    assert window.lines()[-1] == "    re"


def test_one_undo_takes_back_what_was_accepted(edit):
    window = edit(MULTIPLY)
    window.type("re")
    window.wait_for_ghost(r"turn a \* b")
    window.press("Tab")
    window.wait_for_line("    return a * b")
    window.press("Control+z")
    window.wait_for_line("    re")
