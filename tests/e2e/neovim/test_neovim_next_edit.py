"""Next edits in the real Neovim with the real server and model: shown, applied, refused, undone."""

from __future__ import annotations

import pytest

from tests.e2e.sample_documents import RENAMED, USES

pytestmark = [pytest.mark.neovim, pytest.mark.real_model]

ROW = """(function()
  local space = vim.api.nvim_get_namespaces()["draftline.next_edit"]
  local marks = space and vim.api.nvim_buf_get_extmarks(0, space, 0, -1, {}) or {}
  return marks[1] and marks[1][2] + 1 or 0
end)()"""
MAPPED = "vim.fn.maparg('<Tab>', 'n') .. vim.fn.maparg('X', 'n')"


def wait_for_edit(neovim, line: int) -> None:
    """Wait until the edit of a line is on the screen."""
    neovim.wait_for_lua(f"{ROW} == {line}", f"next edit in line {line}")


def wait_for_none(neovim) -> None:
    """Wait until no edit is on the screen and none is being found."""
    neovim.wait_for_lua(f"{ROW} == 0 and not require('draftline.next_edit').is_waiting()", "end of the edits")


def apply(neovim, line: int) -> None:
    """Jump to an edit and apply it."""
    wait_for_edit(neovim, line)
    neovim.type("<Tab>")
    neovim.wait_for_lua(f"vim.fn.line('.') == {line}", f"cursor in line {line}")
    neovim.type("<Tab>")


@pytest.fixture
def renamed(edit):
    """Neovim after an import was renamed, with the first edit on the screen."""
    neovim = edit("import jsonlib\n" + USES, options="keys = { refuse_edit = 'X' }")
    neovim.type("gg0wciwfastjson<Esc>")
    wait_for_edit(neovim, 5)
    return neovim


def test_tab_goes_through_the_other_uses_and_one_undo_takes_one_back(renamed):
    before = renamed.lines()
    shown = "    return jsonlibfastjson.load(path)"
    renamed.wait_for(lambda: shown in renamed.screen.lines(), "old and new name side by side")
    assert renamed.lines() == before, "an edit changes nothing before it is applied"
    for line in (5, 9, 13):
        apply(renamed, line)
    wait_for_none(renamed)
    assert renamed.lines() == ["import fastjson", *RENAMED.splitlines()]
    renamed.type("u")
    renamed.wait_for_lua("vim.fn.getline(13):match('jsonlib')", "undone edit")
    assert sum("jsonlib" in line for line in renamed.lines()) == 1
    wait_for_none(renamed)
    renamed.command("Draftline next_edit")
    wait_for_edit(renamed, 13)


def test_a_refused_edit_never_comes_back(renamed):
    renamed.type("X")
    apply(renamed, 9)
    apply(renamed, 13)
    wait_for_none(renamed)
    renamed.type("ggO<Esc>")
    renamed.wait_for_lua("vim.fn.line('$') == 14 and vim.fn.mode() == 'n'", "new line")
    wait_for_none(renamed)
    assert [number for number, line in enumerate(renamed.lines(), 1) if "jsonlib" in line] == [6]


def test_escape_is_never_taken_and_the_keys_of_edits_are_the_users_choice(edit):
    neovim = edit("import jsonlib\n" + USES, options="keys = { accept_edit = '<M-e>' }")
    neovim.type("gg0wciwfastjson<Esc>")
    wait_for_edit(neovim, 5)
    mapped = [neovim.lua(f"return vim.fn.maparg('{key}', 'n') ~= ''") for key in ("<Tab>", "<Esc>", "<M-e>")]
    assert mapped == [False, False, True]
    neovim.type("<Esc><M-e>")
    neovim.wait_for_lua("vim.fn.line('.') == 5", "cursor at the edit")


def test_typing_elsewhere_removes_it_and_gives_the_keys_back(renamed):
    assert renamed.lua(f"return {MAPPED}") != ""
    renamed.type("Gox")
    renamed.wait_for_lua(f"{ROW} == 0", "empty screen")
    assert renamed.lua(f"return {MAPPED}") == ""


def test_an_edit_off_the_screen_is_a_hint_with_its_line(edit):
    neovim = edit("import jsonlib\n" + "\n" * 60 + USES)
    neovim.type("gg0wciwfastjson<Esc>")
    wait_for_edit(neovim, 1)
    hint = "import fastjson  → line 65: return fastjson.load(path)"
    neovim.wait_for(lambda: hint in neovim.screen.lines(), "hint at the cursor")
    apply_at = "    return jsonlibfastjson.load(path)"
    neovim.type("<Tab>")
    neovim.wait_for(lambda: apply_at in neovim.screen.lines(), "edit in its place")
    neovim.type("<Tab>")
    neovim.wait_for_lua("vim.fn.getline(65) == '    return fastjson.load(path)'", "applied edit")
    neovim.type("<C-o>")
    neovim.wait_for_lua("vim.fn.line('.') == 1", "jump back")


def test_a_deletion_off_the_screen_says_what_it_deletes(edit):
    debug = "    print('debug', path)\n"
    load = f"def load(path):\n{debug}    return open(path).read()\n"
    neovim = edit(load + "\n" * 60 + f"def save(path, text):\n{debug}    open(path, 'w').write(text)\n")
    neovim.type(":2d<CR>")
    neovim.wait_for(lambda: "→ line 64: delete print('debug', path)" in neovim.screen.lines()[1], "hint at the cursor")
    neovim.type("<Tab>")
    wait_for_edit(neovim, 64)
    neovim.type("<Tab>")
    neovim.wait_for_lua("vim.fn.getline(64) == \"    open(path, 'w').write(text)\"", "applied deletion")


def test_an_edit_in_a_closed_fold_is_a_hint_and_tab_opens_the_fold(edit):
    neovim = edit("import jsonlib\n" + USES)
    neovim.type(":4,6fold<CR>")
    neovim.type("gg0wciwfastjson<Esc>")
    wait_for_edit(neovim, 1)
    neovim.wait_for(lambda: "→ line 5: return fastjson.load(path)" in neovim.screen.lines()[0], "hint")
    neovim.type("<Tab>")
    neovim.wait_for_lua("vim.fn.line('.') == 5 and vim.fn.foldclosed(5) == -1", "open fold")
    wait_for_edit(neovim, 5)
    assert "fastjson" not in neovim.lines()[4]
    neovim.type("<Tab>")
    neovim.wait_for_lua("vim.fn.getline(5):match('fastjson')", "applied edit")


def test_the_suggestion_at_the_cursor_goes_first(renamed):
    renamed.type("Godef multiply(a, b):<CR>")
    ghost = renamed.wait_for_ghost(lambda text: "return" in text)
    assert renamed.lua(f"return {ROW}") == 0
    renamed.type("<Tab>")
    renamed.wait_for_lua(f"vim.fn.getline('.') == '    {ghost.strip()}'", "accepted suggestion")
    renamed.type("<Esc>")
    wait_for_edit(renamed, 5)


def test_without_automatic_edits_a_command_requests_one(edit):
    neovim = edit("import jsonlib\n" + USES, options="settings = { next_edit = 'manual' }")
    neovim.type("gg0wciwfastjson<Esc>")
    neovim.wait_for_lua("vim.list_contains(sent, 'draftline/nextEdit')", "automatic request")
    wait_for_none(neovim)
    neovim.command("Draftline next_edit")
    wait_for_edit(neovim, 5)


@pytest.mark.parametrize("command", ["disable", "snooze 10"])
def test_whoever_wants_none_gets_rid_of_the_one_on_the_screen(renamed, command):
    renamed.command(f"Draftline {command}")
    renamed.wait_for_lua(f"{ROW} == 0", "empty screen")
    assert renamed.lua(f"return {MAPPED}") == ""


def test_an_edit_of_an_older_version_is_dropped_even_if_its_line_is_the_same(renamed):
    renamed.type("11Gdd5G<Tab>")  # in one go: the plugin learns of the change after the Tab
    wait_for_edit(renamed, 5)
    assert renamed.lines()[4] == "    return jsonlib.load(path)"


@pytest.fixture
def older(edit):
    """Neovim after an import was renamed and six other lines were changed, with no edit on the screen."""
    neovim = edit("import jsonlib\n" + USES + "".join(f"\n\nvalue_{number} = 0\n" for number in range(6)))
    neovim.type("gg0wciwfastjson<Esc>")
    wait_for_edit(neovim, 5)
    neovim.type(":g/^value_/s/0$/1/<CR>")
    wait_for_none(neovim)
    return neovim


def report(neovim, bufnr: int) -> None:
    """Have another tool report that jsonlib is not defined in line 13."""
    neovim.lua(
        f"vim.diagnostic.set(vim.api.nvim_create_namespace('checker'), {bufnr},"
        " {{ lnum = 12, col = 11, message = ... }})",
        '"jsonlib" is not defined',
    )


def test_a_diagnostic_of_another_tool_recalls_an_older_rename(older):
    report(older, 0)
    wait_for_edit(older, 13)
    assert older.lua("return vim.list_contains(sent, 'draftline/diagnostics')")


def test_a_diagnostic_that_came_in_the_background_recalls_it_when_the_buffer_is_in_front(older):
    bufnr = older.lua("return vim.api.nvim_get_current_buf()")
    older.command("enew")
    report(older, bufnr)
    older.command(f"buffer {bufnr}")
    wait_for_edit(older, 13)


def test_tab_jumps_to_an_edit_of_another_buffer_and_one_undo_takes_it_back_there(edit, tmp_path):
    neovim = edit("def load_all(path):\n    return open(path).read()\n", name="store.py")
    used = "import os\n\nfrom store import load_all\n\nprint(load_all(os.sep))\n"
    (tmp_path / "main.py").write_text(used, encoding="utf-8")
    neovim.command(f"cd {tmp_path}")
    neovim.command("edit main.py")
    neovim.command("buffer store.py")
    neovim.type("gg0wciwread_all<Esc>")
    hint = "def read_all(path):  → main.py:3: from store import read_all"
    neovim.wait_for(lambda: hint in neovim.screen.lines(), "hint with the file and the line")
    assert neovim.lua(f"return {ROW}") == 1
    neovim.type("<Tab>")
    neovim.wait_for_lua("vim.fn.expand('%:t') == 'main.py' and vim.fn.line('.') == 3", "jump to the other buffer")
    wait_for_edit(neovim, 3)
    assert neovim.lines() == used.splitlines(), "a jump changes nothing"
    neovim.type("<Tab>")
    apply(neovim, 5)
    wait_for_none(neovim)
    assert neovim.lines() == used.replace("load_all", "read_all").splitlines()
    neovim.type("uu")
    neovim.wait_for_lua("vim.fn.getline(3) == 'from store import load_all'", "undone edits")
    assert neovim.lines() == used.splitlines()
    neovim.command("buffer store.py")
    assert neovim.lines()[0] == "def read_all(path):", "each file has its own undo"
    neovim.type("u")
    neovim.wait_for_lua("vim.fn.getline(1) == 'def load_all(path):'", "undone rename")


def test_a_refused_edit_of_another_buffer_never_comes_back(edit, tmp_path):
    neovim = edit("def load_all(path):\n    return path\n", name="store.py", options="keys = { refuse_edit = 'X' }")
    (tmp_path / "main.py").write_text("from store import load_all\n", encoding="utf-8")
    neovim.command(f"edit {tmp_path}/main.py")
    neovim.command("buffer store.py")
    neovim.type("gg0wciwread_all<Esc>")
    neovim.wait_for(lambda: any("main.py:1: from store" in line for line in neovim.screen.lines()), "hint")
    neovim.type("X")
    wait_for_none(neovim)
    neovim.command("Draftline next_edit")
    wait_for_none(neovim)
    assert neovim.lua("return vim.fn.expand('%:t')") == "store.py"
