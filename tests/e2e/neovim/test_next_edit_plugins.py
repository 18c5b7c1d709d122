"""Others' plugins for next edits, unchanged, in the real Neovim with the real server and model."""

import pytest

from tests.e2e.neovim.plugins import plugin_folder
from tests.e2e.sample_documents import RENAMED, USES

pytestmark = [pytest.mark.clients, pytest.mark.real_model, pytest.mark.timeout(900)]

SERVER = """
vim.opt.runtimepath:prepend("{folder}")
local function on_status(_, params, context) require("draftline.status").update(params, context.client_id) end
vim.lsp.config("{name}", {{ COMMAND handlers = {{ ["draftline/status"] = on_status }} }})
vim.lsp.enable("{name}")
"""
SIDEKICK = """
require("sidekick").setup({})
vim.keymap.set("n", "<Tab>", require("sidekick").nes_jump_or_apply)
"""
COPILOT_LSP = """
vim.keymap.set("n", "<Tab>", function()
  local edits = require("copilot-lsp.nes")
  return edits.walk_cursor_start_edit() or (edits.apply_pending_nes() and edits.walk_cursor_end_edit())
end)
"""


def marks(space: str) -> str:
    """Return a Lua expression for the number of marks of a namespace."""
    return f"#vim.api.nvim_buf_get_extmarks(0, vim.api.nvim_create_namespace('{space}'), 0, -1, {{}})"


def rename(edit, lua: str):
    """Open a file and rename its import."""
    neovim = edit("import jsonlib\n" + USES, lua=lua)
    neovim.type("gg0wciwfastjson<Esc>")
    return neovim


def test_sidekick_shows_edits_and_applies_what_it_shows(edit):
    neovim = rename(edit, SERVER.format(folder=plugin_folder("sidekick.nvim"), name="copilot_draftline") + SIDEKICK)
    while left := [at for at, line in enumerate(neovim.lines(), 1) if "jsonlib" in line]:
        neovim.wait_for_lua("#require('sidekick.nes').get() > 0", f"edit in line {left[0]}")
        starts = neovim.lua(
            "return vim.tbl_map(function(edit) return edit.from[1] + 1 end, require('sidekick.nes').get())"
        )
        assert starts == left[: len(starts)]
        new = RENAMED.splitlines()[left[0] - 2].split()[-1]
        neovim.wait_for(lambda new=new: any(new in row for row in neovim.screen.lines()), "new text on the screen")
        assert neovim.lua(f"return {marks('sidekick.ui')}") >= len(starts)
        neovim.type("<Tab>")
        neovim.wait_for_lua(f"vim.fn.line('.') == {left[0]}", f"jump to line {left[0]}")
        neovim.type("<Tab>")
        neovim.wait_for_lua(f"vim.fn.getline({starts[-1]}):match('fastjson')", f"applied edit in line {starts[-1]}")
    neovim.wait_for_lua("vim.list_contains(sent, 'workspace/executeCommand')", "report of the accepted edits")
    assert neovim.lines() == ["import fastjson", *RENAMED.splitlines()]


def test_copilot_lsp_shows_one_edit_after_the_other_and_applies_them(edit):
    folder = plugin_folder("copilot-lsp")
    neovim = rename(
        edit, "vim.g.copilot_nes_debounce = 50\n" + SERVER.format(folder=folder, name="copilot_ls") + COPILOT_LSP
    )
    for line in (5, 9, 13):
        shown = f"vim.b.nes_state and vim.b.nes_state.range.start.line == {line} - 1"
        neovim.wait_for_lua(shown, f"edit in line {line}")
        assert neovim.lua(f"return {marks('copilotlsp.nes')}") >= 1
        neovim.type("<Tab>")
        neovim.wait_for_lua(f"vim.fn.line('.') == {line}", f"jump to line {line}")
        neovim.type("<Tab>")
        neovim.wait_for_lua(f"vim.fn.getline({line}):match('fastjson')", f"applied edit in line {line}")
    assert neovim.lines() == ["import fastjson", *RENAMED.splitlines()]
    assert neovim.lua("return vim.list_contains(sent, 'textDocument/didShowInlineEdit')")
