"""Next edits in the real Neovim with the real server and model: shown, applied, refused, undone."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.neovim, pytest.mark.real_model]

USES = """

def load(path):
    return jsonlib.load(path)


def loads(text):
    return jsonlib.loads(text)


def dumps(value):
    return jsonlib.dumps(value)
"""
RENAMED = USES.replace("jsonlib", "fastjson")
ROW = """(function()
  local space = vim.api.nvim_get_namespaces()["draftline.next_edit"]
  local marks = space and vim.api.nvim_buf_get_extmarks(0, space, 0, -1, {}) or {}
  return marks[1] and marks[1][2] + 1 or 0
end)()"""


def text(neovim) -> str:
    return neovim.lua("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n') .. '\\n'")


@pytest.fixture
def renamed(edit):
    """Neovim after an import was renamed, with the first edit on the screen."""
    neovim = edit("import jsonlib\n" + USES)
    neovim.type("ggwciwfastjson<Esc>")
    neovim.wait_for_lua(f"{ROW} == 5", "next edit in line 5")
    return neovim


def test_tab_goes_through_the_other_uses_and_one_undo_takes_one_back(renamed):
    for line in (5, 9, 13):
        renamed.wait_for_lua(f"{ROW} == {line}", f"next edit in line {line}")
        renamed.type("<Tab>")
        renamed.wait_for_lua(f"vim.fn.line('.') == {line}", f"cursor in line {line}")
        renamed.type("<Tab>")
    renamed.wait_for_lua(f"{ROW} == 0", "no further edit")
    assert text(renamed) == "import fastjson\n" + RENAMED
    renamed.type("u")
    renamed.wait_for_lua("vim.fn.getline(13):match('jsonlib')", "last edit undone")
    assert text(renamed).count("jsonlib") == 1


def test_a_refused_edit_never_comes_back(renamed):
    renamed.type("<Esc>")
    renamed.wait_for_lua(f"{ROW} == 9", "next edit in line 9")
    renamed.type("<Tab><Tab>")
    renamed.wait_for_lua(f"{ROW} == 13", "next edit in line 13")
    renamed.type("<Tab><Tab>")
    renamed.wait_for_lua(f"{ROW} == 0", "no further edit")
    assert text(renamed).count("jsonlib") == 1


def test_typing_elsewhere_removes_it_and_gives_the_keys_back(renamed):
    renamed.type("Gox")
    renamed.wait_for_lua(f"{ROW} == 0", "no edit on the screen")
    assert renamed.lua("return vim.fn.maparg('<Tab>', 'n') == ''")
