"""An edit by an instruction in the real VS Code with the real server and model: a diff, accepted or rejected."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.vscode, pytest.mark.real_model]

CODE = [
    "def total(items):",
    "    result = 0",
    "    for item in items:",
    "        result += item.price",
    "    return result",
]
NEW = [line.replace("result", "amount") for line in CODE]
BOTH = [*CODE, *NEW[1:]]
COLOURED = """((count, times) => {
  const colour = (row) => getComputedStyle(row).backgroundColor;
  const rows = [...document.querySelectorAll('.part.editor .view-overlays .cdr')].map(colour);
  const shown = rows.filter((one) => one && one !== 'rgba(0, 0, 0, 0)');
  const counts = shown.reduce((found, one) => ({ ...found, [one]: (found[one] || 0) + 1 }), {});
  return Object.values(counts).filter((each) => each === count).length === times;
})"""


def ask_for_edit(window) -> None:
    """Select everything and ask for an edit."""
    window.press("Control+a")
    window.command("Edit Selection with an Instruction")
    window.page.wait_for_selector(".quick-input-widget:visible >> text=How should the selected lines change")
    window.type("Rename the variable result to amount.")
    window.press("Enter")


def wait_for_diff(window) -> None:
    """Wait for the old and the new lines, and for their colours, which come after them and before the keys."""
    wait_for_lines(window, BOTH)
    window.wait_for(f"{COLOURED}(4, 2)", "four old and four new lines in two colours")


def wait_for_lines(window, lines: list[str]) -> None:
    shown = json.dumps(lines, separators=(",", ":"))
    window.wait_for(f"JSON.stringify(linesShown()) === {json.dumps(shown)}", f"{lines}")


def wait_for_text(file: Path, lines: list[str]) -> None:
    """Wait until the file has been saved with these lines."""
    deadline = time.monotonic() + 30
    while file.read_text() != "\n".join(lines):
        assert time.monotonic() < deadline, file.read_text()


def test_an_edit_is_rejected_with_escape_or_accepted_with_tab_and_undone_in_one_step(edit):
    window = edit("\n".join(CODE))
    ask_for_edit(window)
    wait_for_diff(window)
    window.press("Escape")
    wait_for_lines(window, CODE)
    window.wait_for(f"{COLOURED}(4, 0)", "no colours")
    ask_for_edit(window)
    wait_for_diff(window)
    window.press("Tab")
    wait_for_lines(window, NEW)
    window.press("Control+z")
    wait_for_lines(window, CODE)


def test_escape_cancels_an_edit_while_it_is_generated(edit, engine_room):
    window = edit("\n".join(f"result_{number} = total(result, {number * number})" for number in range(60)))
    before = engine_room.completions("cancelled")
    ask_for_edit(window)
    window.page.wait_for_selector(".statusbar-item:has-text('Escape cancels')", state="attached")
    window.press("Escape")
    engine_room.wait_for_completions("cancelled", before)
    assert not any("amount" in line for line in window.lines())


def test_an_edit_leaves_the_keys_of_another_file_alone_and_waits(edit):
    window = edit("\n".join(CODE), "edited.py")
    ask_for_edit(window)
    wait_for_diff(window)
    edit("", "other.txt")
    window.press("Tab")
    window.type("x")
    window.wait_for_line("    x")
    window.page.click(".tab[data-resource-name='edited.py']")
    wait_for_diff(window)
    window.press("Tab")
    wait_for_lines(window, NEW)


@pytest.mark.parametrize("key", ["Tab", "Escape"])
def test_auto_save_keeps_an_edit_and_saves_no_line_that_is_not_accepted(open_window, tmp_path, key):
    (tmp_path / ".vscode").mkdir()
    settings = {"files.autoSave": "afterDelay", "files.autoSaveDelay": 50}
    (tmp_path / ".vscode" / "settings.json").write_text(json.dumps(settings))
    file = tmp_path / "saved.py"
    file.write_text("\n".join(CODE))
    window = open_window(file)
    window.wait_for_ready()
    ask_for_edit(window)
    window.wait_for(f"{COLOURED}(4, 1)", "four old lines in a colour")
    window.press("Control+Home")
    window.type("#")
    wait_for_text(file, ["#" + CODE[0], *CODE[1:]])
    wait_for_lines(window, ["#" + CODE[0], *CODE[1:]])
    window.press(key)
    after = NEW if key == "Tab" else CODE
    wait_for_lines(window, ["#" + CODE[0], *after[1:]])
    wait_for_text(file, ["#" + CODE[0], *after[1:]])
    window.wait_for(f"{COLOURED}(4, 0)", "no colours")
    window.press("Control+z")
    wait_for_lines(window, ["#" + CODE[0], *CODE[1:]] if key == "Tab" else CODE)


def test_an_edit_that_is_on_the_screen_when_the_window_is_reloaded_is_there_again(code_server, open_window, tmp_path):
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".vscode" / "settings.json").write_text('{"files.autoSave": "off"}')
    file = tmp_path / "reloaded.py"
    file.write_text("\n".join(CODE))
    window = open_window(file)
    window.wait_for_ready()
    ask_for_edit(window)
    wait_for_diff(window)
    deadline = time.monotonic() + 30
    while not any(file.name in backup and NEW[-1] in backup for backup in code_server.backups()):
        assert time.monotonic() < deadline, "the editor keeps no backup of the document"
    window.page.reload()
    wait_for_diff(window)
    window.page.click(".part.editor .view-lines")
    window.press("Escape")
    wait_for_lines(window, CODE)
