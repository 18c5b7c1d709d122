"""Next edits in the real VS Code with the real server and model: shown, applied, refused, undone."""

from __future__ import annotations

import itertools
import json

import pytest

from tests.e2e.sample_documents import RENAMED, USES

pytestmark = [pytest.mark.vscode, pytest.mark.real_model]

# What decorations add to the lines on the screen.
ADDED = r"""[...document.querySelectorAll('.part.editor .view-lines span')]
  .map((span) => getComputedStyle(span, '::after').content)
  .filter((content) => /^"[^]+"$/.test(content))
  .map((content) => content.slice(1, -1).replaceAll('\u00a0', ' ')).join('|')"""
# The lines on the screen to which they add something.
CHANGING = r"""[...document.querySelectorAll('.part.editor .view-line')]
  .filter((row) => [...row.querySelectorAll('span')]
    .some((span) => /^"[^]+"$/.test(getComputedStyle(span, '::after').content)))
  .map((row) => row.textContent.replaceAll('\u00a0', ' ')).join('|')"""
# What a MutationObserver of the lines on the screen observes.
OBSERVED = """.observe(document.querySelector('.part.editor .view-lines'),
  { subtree: true, childList: true, attributes: true })"""
IMPORT = "import jsonlib\n"
NUMBERS = itertools.count()  # all tests open their files in one window
LATER = "".join(f"\nvalue_{name} = 0\n" for name in "abcdef")  # as many as the rules learn from


def wait_for_added(window, text: str) -> None:
    """Wait until the decorations of the editor add exactly a text to the screen."""
    window.wait_for(f"({ADDED}) === {json.dumps(text)}", f"decoration {text!r}")


def wait_for_edit_of(window, line: str) -> None:
    """Wait until the screen shows an edit of a line, and no other one."""
    window.wait_for(f"({CHANGING}) === {json.dumps(line)}", f"edit of {line!r}")


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
    window.press("Home", "ArrowRight")  # within a word, where no suggestion appears and Tab indents no line
    wait_for_added(window, "fastjson")
    return window


@pytest.fixture
def older(edit):
    """A window after an import was renamed and six other lines were changed, with no edit on the screen."""
    window = edit(IMPORT + USES + LATER)
    window.press("Control+Home", "End", "Control+Shift+ArrowLeft")
    window.type("fastjson")
    wait_for_added(window, "fastjson")
    window.press("Control+End", "ArrowUp", "End", "Shift+ArrowLeft", "Control+Shift+L")
    window.type("1")
    window.press("Control+Home")
    window.wait_for_line("value_a = 1")
    wait_for_added(window, "")
    return window


def report(window, line: int) -> None:
    """Have another tool report that jsonlib is not defined in one line of the open documents."""
    window.press("Control+Home", *["ArrowDown"] * (line - 1))
    wait_for_cursor(window, line)
    window.command("Report jsonlib in Lines with This Number")


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
    renamed.command("Request the Next Edit")
    wait_for_added(renamed, "fastjson")


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


def test_no_half_of_a_name_appears_elsewhere_while_it_is_typed(edit):
    window = edit("log(old, 1)\n\n\nlog(old, 1)\n")
    window.press("Control+Home", *["ArrowRight"] * 4, *["Shift+ArrowRight"] * 3)
    window.page.evaluate(f"window.addedSeen = []; new MutationObserver(() => addedSeen.push({ADDED}))" + OBSERVED)
    window.type("renamed", pause_ms=250)
    window.press("Home", "ArrowRight")  # within a word, where no suggestion appears and Tab indents no line
    wait_for_edit_of(window, "log(old, 1)")
    wait_for_added(window, "renamed")
    assert set(window.page.evaluate("addedSeen")) <= {"", "renamed"}


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
    window.press("Home", "ArrowRight")  # within a word, where no suggestion appears and Tab indents no line
    wait_for_added(window, "  → line 65: return fastjson.load(path)")
    window.press("Tab")
    wait_for_cursor(window, 65)
    wait_for_added(window, "fastjson")
    window.press("Tab")
    window.wait_for_line("    return fastjson.load(path)")


def test_a_diagnostic_of_another_tool_recalls_an_older_rename_until_it_is_gone(older):
    report(older, 9)
    wait_for_edit_of(older, "    return jsonlib.loads(text)")
    report(older, 13)
    older.command("Request the Next Edit")
    wait_for_edit_of(older, "    return jsonlib.dumps(value)")
    older.press("Tab")
    older.wait_for_line("    return fastjson.dumps(value)")


def test_a_diagnostic_that_came_in_the_background_recalls_it_when_the_file_is_in_front(older, tmp_path):
    [file] = tmp_path.glob("*.py")
    other = tmp_path / "other.py"
    other.write_text("\n" * 20)
    older.open(other)
    report(older, 13)
    older.page.click(f".tab[data-resource-name='{file.name}']")
    wait_for_edit_of(older, "    return jsonlib.dumps(value)")


def test_selections_and_open_widgets_have_their_keys_first(renamed):
    renamed.press("Control+f")
    renamed.page.wait_for_selector(".find-widget.visible")
    renamed.page.click(".part.editor .view-lines")
    renamed.press("Escape")
    renamed.page.wait_for_selector(".find-widget.visible", state="detached")
    wait_for_edit_of(renamed, "    return jsonlib.load(path)")
    renamed.press("Control+Home", "Shift+ArrowDown", "Tab")
    renamed.wait_for_line("    import fastjson")


def test_a_snooze_removes_it(renamed):
    renamed.command("Snooze…")
    renamed.page.wait_for_selector(".quick-input-list .monaco-list-row.focused:has-text('5 minutes')")
    renamed.press("Enter")
    wait_for_added(renamed, "")
    renamed.command("End the Snooze")


def test_tab_indents_where_it_indents_a_line(edit):
    window = edit(IMPORT + USES)
    window.press("Control+Home", "End", "Control+Shift+ArrowLeft")
    window.type("fastjson")
    window.press("Home")
    wait_for_added(window, "fastjson")
    window.press("Tab")
    window.wait_for_line("    import fastjson")


@pytest.fixture
def renamed_elsewhere(edit, window):
    """A window after a function was renamed that another open document uses, and the names of both files."""
    store, main = (f"{name}_{next(NUMBERS)}.py" for name in ("store", "main"))
    (window.folder / store).write_text("def load_all(path):\n    return open(path).read()\n", encoding="utf-8")
    edit("import os\n\nfrom store import load_all\n\nprint(load_all(os.sep))\n", main)
    window.open(window.folder / store)
    window.press("Control+Home", *["ArrowRight"] * 4, *["Shift+ArrowRight"] * len("load_all"))
    window.type("read_all")
    window.press("Home", "ArrowRight")  # within a word, where no suggestion appears and Tab indents no line
    wait_for_added(window, f"  → {main}:3: from store import read_all")
    return window, store, main


def test_tab_jumps_to_an_edit_of_another_document_and_one_undo_takes_it_back_there(renamed_elsewhere):
    window, store, _ = renamed_elsewhere
    window.press("Tab")
    wait_for_cursor(window, 3)
    wait_for_edit_of(window, "from store import load_all")
    window.press("Tab")
    window.wait_for_line("from store import read_all")
    wait_for_edit_of(window, "print(load_all(os.sep))")
    window.press("Tab")
    wait_for_cursor(window, 5)
    window.press("Tab")
    window.wait_for_line("print(read_all(os.sep))")
    wait_for_added(window, "")
    window.press("Control+z", "Control+z")
    window.wait_for_line("from store import load_all")
    assert "print(load_all(os.sep))" in window.lines()
    window.page.click(f".tab[data-resource-name='{store}']")
    window.wait_for_line("def read_all(path):")
    window.press("Control+z")
    window.wait_for_line("def load_all(path):")


def test_a_refused_edit_of_another_document_never_comes_back(renamed_elsewhere):
    window, _, main = renamed_elsewhere
    window.press("Escape")
    wait_for_added(window, f"  → {main}:5: print(read_all(os.sep))")
    window.press("Escape")
    wait_for_added(window, "")
    window.command("Request the Next Edit")
    wait_for_added(window, "")
