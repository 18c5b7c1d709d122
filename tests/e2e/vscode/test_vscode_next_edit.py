"""Next edits in the real VS Code with the real server and model: shown, applied, refused, undone."""

from __future__ import annotations

import json

import pytest

from tests.e2e.sample_documents import RENAMED, USES

pytestmark = [pytest.mark.vscode, pytest.mark.real_model]

# What decorations add to the lines on the screen.
ADDED = r"""[...document.querySelectorAll('.part.editor .view-lines span')]
  .map((span) => getComputedStyle(span, '::after').content)
  .filter((content) => /^"[^]+"$/.test(content))
  .map((content) => content.slice(1, -1).replaceAll('\u00a0', ' ')).join('|')"""
IMPORT = "import jsonlib\n"


def wait_for_added(window, text: str) -> None:
    """Wait until the decorations of the editor add exactly a text to the screen."""
    window.wait_for(f"({ADDED}) === {json.dumps(text)}", f"decoration {text!r}")


def wait_for_cursor(window, line: int) -> None:
    """Wait until the cursor is in a line."""
    window.page.wait_for_selector(f".statusbar-item:has-text('Ln {line},')")


def apply(window, line: int) -> None:
    """Jump to an edit and apply it."""
    wait_for_added(window, "fastjson")
    window.press("Tab")
    wait_for_cursor(window, line)
    window.press("Tab")


@pytest.fixture
def renamed(edit):
    """A window after an import was renamed, with the first edit on the screen and no suggestion at the cursor."""
    window = edit(IMPORT + USES)
    window.press("Control+Home", "End", "Control+Shift+ArrowLeft")
    window.type("fastjson")
    window.press("Home")
    wait_for_added(window, "fastjson")
    return window


def test_tab_goes_through_the_other_uses_and_one_undo_takes_one_back(renamed):
    expected = f"import fastjson\n{RENAMED}".split("\n")
    for line in (5, 9, 13):
        apply(renamed, line)
        renamed.wait_for_line(expected[line - 1])
    wait_for_added(renamed, "")
    assert renamed.lines() == expected
    renamed.press("Control+z")
    renamed.wait_for_line("    return jsonlib.dumps(value)")
    assert sum("jsonlib" in line for line in renamed.lines()) == 1


def test_a_refused_edit_never_comes_back(renamed):
    renamed.press("Escape")
    wait_for_added(renamed, "")
    apply(renamed, 9)
    renamed.wait_for_line("    return fastjson.loads(text)")
    apply(renamed, 13)
    renamed.wait_for_line("    return fastjson.dumps(value)")
    wait_for_added(renamed, "")
    renamed.command("Request the Next Edit")
    wait_for_added(renamed, "")
    assert [number for number, line in enumerate(renamed.lines(), 1) if "jsonlib" in line] == [5]


def test_typing_elsewhere_removes_it_until_it_is_requested(renamed):
    renamed.press("Control+End")
    renamed.type("x")
    wait_for_added(renamed, "")
    renamed.press("Home")
    renamed.command("Request the Next Edit")
    wait_for_added(renamed, "fastjson")


def test_an_edit_off_the_screen_is_a_hint_with_its_line(edit):
    window = edit(IMPORT + "\n" * 60 + USES)
    window.press("Control+Home", "End", "Control+Shift+ArrowLeft")
    window.type("fastjson")
    window.press("Home")
    wait_for_added(window, "  → line 65: return fastjson.load(path)")
    window.press("Tab")
    wait_for_cursor(window, 65)
    wait_for_added(window, "fastjson")
    window.press("Tab")
    window.wait_for_line("    return fastjson.load(path)")
