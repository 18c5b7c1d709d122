"""The plugin and the life of its server, which runs inside Neovim: started, restarted, switched off."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.neovim

CLIENT = "require('draftline.server').client(0)"


def test_a_restart_keeps_the_workspace_of_each_buffer(serve, tmp_path):
    neovim = serve({})
    folders = [tmp_path / name for name in ("shop", "library")]
    for folder in folders:
        (folder / ".git").mkdir(parents=True)
        neovim.command(f"edit {folder}/example.txt")
        neovim.wait_for_lua(f"{CLIENT} and {CLIENT}.root_dir == {json.dumps(str(folder))}", "a client for the folder")
    before = neovim.lua("return #started")
    neovim.command("Draftline restart")
    neovim.wait_for_lua(f"#started == 2 * {before}", "as many new servers")
    roots = neovim.lua("return vim.tbl_map(function(params) return params.rootPath end, started)")
    assert sorted(roots[before:], key=str) == sorted(roots[:before], key=str)
    neovim.wait_for_lua(f"{CLIENT} and {CLIENT}.root_dir == {json.dumps(str(folders[1]))}", "a client for the folder")


def test_a_restart_starts_a_server_that_has_crashed(serve):
    neovim = serve({"x": [{"text": "y"}]})
    neovim.lua("crash()")
    neovim.wait_for_lua(f"not {CLIENT}", "end of the server")
    neovim.command("Draftline restart")
    neovim.wait_for_lua(CLIENT, "a new server")
    neovim.type("ix")
    neovim.wait_for_ghost(lambda ghost: ghost == "y")


# Neovim 0.11 has no inline completion of its own and does not announce it.
LIKE_NEOVIM_0_11 = """
local make = vim.lsp.protocol.make_client_capabilities
vim.lsp.inline_completion = nil
vim.lsp.protocol.make_client_capabilities = function()
  local made = make()
  made.textDocument.inlineCompletion = nil
  return made
end
"""


def test_the_server_learns_that_suggestions_are_drawn_where_neovim_itself_cannot(serve):
    neovim = serve({}, options=LIKE_NEOVIM_0_11)
    announced = neovim.lua("return started[1].capabilities.textDocument")
    assert announced["inlineCompletion"] == {"dynamicRegistration": False}
    assert "hover" in announced


BUILT_IN = 'vim.lsp.enable("draftline")'


@pytest.mark.parametrize(
    ("mapping", "inserted"),
    [
        ("inoremap <expr> <Tab> repeat('a', 3)", "aaa"),
        ("imap <expr> <Tab> pumvisible() ? '<C-n>' : '<Tab>'", "\t"),
        ("inoremap <buffer> <Tab> own", "own"),
        ("imap <Tab> <Plug>(other) | inoremap <Plug>(other) other", "other"),
        ("lua vim.keymap.set('i', '<Tab>', function() return '<C-v>u0041' end, { expr = true })", "A"),
        ("lua vim.keymap.set('i', '<Tab>', function() vim.api.nvim_put({ 'put' }, 'c', false, true) end)", "put"),
        ("", "\t"),
    ],
)
def test_without_a_suggestion_tab_keeps_its_earlier_mapping(serve, mapping, inserted):
    earlier = f"vim.api.nvim_create_autocmd('BufReadPre', {{ command = [==[{mapping}]==] }})"
    neovim = serve({}, start=BUILT_IN, options=earlier.replace(" | ", "]==] .. '\\n' .. [==["))
    for expected in (2 * inserted, 4 * inserted):
        neovim.type("A<Tab><Tab><Esc>")
        neovim.wait_for_lua(f"vim.api.nvim_get_current_line() == {json.dumps(expected)}", f"line {expected!r}")
        neovim.command("Draftline restart")
        neovim.wait_for_lua(f"#started > 1 and {CLIENT} and {CLIENT}.initialized", "a new server")


def test_without_setup_switching_off_hides_suggestions_also_after_a_restart_and_switching_on_shows_them(serve):
    neovim = serve({"x = ": [{"text": "one"}]}, start=BUILT_IN)
    for on, off in (("enable", "disable"), ("toggle", "toggle")):
        neovim.type("ccx = ")
        neovim.wait_for_ghost(lambda ghost: ghost == "one")
        neovim.command(f"Draftline {off}")
        neovim.wait_for_no_ghost()
        assert not neovim.lua(f"return vim.lsp.inline_completion.is_enabled({{ client_id = {CLIENT}.id }})")
        neovim.type("<Esc>")
        before = neovim.lua("return #started")
        neovim.command("Draftline restart")
        neovim.wait_for_lua(f"#started > {before} and {CLIENT} and {CLIENT}.initialized", "a new server")
        neovim.type("ccx = ")
        assert neovim.lua("return vim.tbl_isempty(vim.lsp._capability.all.inline_completion.active)")
        neovim.type("<Esc>")
        neovim.command(f"Draftline {on}")


def test_changing_the_trigger_changes_nothing_else_that_the_user_configured(serve):
    own = 'vim.lsp.config("draftline", { settings = { draftline = { max_tokens = 5 } } })'
    neovim = serve({}, start=BUILT_IN, options=own)
    neovim.command("Draftline manual")
    settings = {"draftline": {"max_tokens": 5, "trigger": "manual"}}
    assert neovim.lua(f"return {CLIENT}.settings") == settings
    neovim.command("Draftline restart")
    neovim.wait_for_lua(f"#started == 2 and {CLIENT} and {CLIENT}.initialized", "the same server again")
    assert neovim.lua(f"return {CLIENT}.settings") == settings


ITEMS = """
  local found
  require("draftline.menu").request(false, function(items) found = items end)
  vim.wait(5000, function() return found end)
  return { #found, require("draftline.menu").is_available() }
"""


def test_switching_off_also_empties_the_completion_menu(serve):
    neovim = serve({"": [{"text": "one"}]})
    assert neovim.lua(ITEMS) == [1, True]
    neovim.command("Draftline disable")
    assert neovim.lua(ITEMS) == [0, False]


def test_a_very_long_word_does_not_keep_the_completion_menu_waiting(serve):
    before = "x" * 200_000 + "("
    neovim = serve({before: [{"text": "one"}]}, text=before)
    neovim.type("A")
    assert neovim.lua(ITEMS) == [1, True]


def test_a_wiped_buffer_leaves_no_autocommand(serve):
    neovim = serve({})
    count = "return #vim.api.nvim_get_autocmds({ event = 'User', pattern = 'DraftlineStatus' })"
    before = neovim.lua(count)
    neovim.command("edit other.txt")
    neovim.wait_for_lua(CLIENT, "a client for the other buffer")
    assert neovim.lua(count) == before + 1
    neovim.command("bwipeout!")
    assert neovim.lua(count) == before


def test_a_key_that_is_not_wanted_is_not_mapped_for_edits_either(serve):
    neovim = serve({}, text="x\n", start='require("draftline").setup({ keys = { accept = false } })')
    neovim.command("Draftline edit rename x")
    mapped = "return vim.fn.maparg('%s', 'n', false, true).desc"
    assert neovim.lua(mapped % "<Esc>") == "draftline"
    assert neovim.lua(mapped % "<Tab>") is None
