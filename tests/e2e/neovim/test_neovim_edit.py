"""Edits by an instruction in the real Neovim with the real server and model: a diff in the buffer, accepted or not."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.neovim, pytest.mark.real_model]

CODE = """def total(items):
    result = 0
    for item in items:
        result += item.price
    return result
"""
RENAME = "Rename the variable result to amount."
STATE = "require('draftline.selection').state()"
DRAWN = """
local space = vim.api.nvim_get_namespaces()["draftline.edit"]
local added, removed = {}, {}
for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true })) do
  if mark[4].line_hl_group == "DraftlineRemoved" then table.insert(removed, mark[2] + 1) end
  for _, line in ipairs(mark[4].virt_lines or {}) do table.insert(added, line[1][1]) end
end
return { added, removed }
"""

NOTE_CANCELLED = """
cancelled = {}
vim.api.nvim_create_autocmd("LspRequest", {
  callback = function(event)
    local request = event.data.request
    if request.type == "cancel" then table.insert(cancelled, request.method) end
  end,
})
"""


def start_edit(neovim, instruction=RENAME):
    """Select the whole file and start an edit."""
    neovim.type(f"ggVG:Draftline edit {instruction}<CR>")


def test_an_edit_is_shown_as_a_diff_accepted_with_tab_and_undone_in_one_step(edit):
    neovim = edit(CODE + "\n\nprint(total([]))\n")
    neovim.type(f"ggV4j:Draftline edit {RENAME}<CR>")
    neovim.wait_for_lua(f"{STATE} == 'complete'", "complete edit")
    before = neovim.lines()
    added, removed = neovim.lua(DRAWN)
    assert before == [*CODE.splitlines(), "", "", "print(total([]))"], (
        "the buffer does not change before it is accepted"
    )
    assert [line.rstrip() for line in added] == ["    amount = 0", "        amount += item.price", "    return amount"]
    assert removed == [2, 4, 5]
    neovim.wait_for(
        lambda: any("amount += item.price" in row for row in neovim.screen.lines()), "added line on the screen"
    )
    neovim.type("<Tab>")
    neovim.wait_for_lua(f"{STATE} == nil", "accepted edit")
    assert neovim.lines() == [line.replace("result", "amount") for line in before]
    assert neovim.lua(DRAWN) in ([[], []], [{}, {}])
    assert neovim.lua("return vim.fn.maparg('<Tab>', 'n') .. vim.fn.maparg('<Esc>', 'n')") == ""
    neovim.type("u")
    assert neovim.lines() == before


def test_escape_cancels_an_edit_while_it_is_generated_and_rejects_a_complete_one(edit):
    neovim = edit(CODE * 8)
    neovim.lua(NOTE_CANCELLED)
    neovim.command("nnoremap <buffer> <Esc> <Cmd>let g:own = 1<CR>")
    start_edit(neovim)
    neovim.wait_for_lua(f"{STATE} == 'generating'", "edit that is generated")
    neovim.type("<Esc>")
    neovim.wait_for_lua(f"{STATE} == nil", "end of the edit")
    assert neovim.lua("return cancelled") == ["draftline/edit"]
    neovim.type("<Esc>")
    assert neovim.lua("return vim.g.own") == 1, "the user's own mapping is back"
    neovim.type(f"ggV4j:Draftline edit {RENAME}<CR>")
    neovim.wait_for_lua(f"{STATE} == 'complete'", "complete edit")
    neovim.type("<Esc>")
    neovim.wait_for_lua(f"{STATE} == nil", "rejected edit")
    assert neovim.lines() == (CODE * 8).splitlines()
    assert neovim.lua("return vim.fn.undotree().seq_last") == 0


def test_a_change_of_the_buffer_drops_the_edit(edit):
    neovim = edit(CODE)
    start_edit(neovim)
    neovim.wait_for_lua(f"{STATE} == 'complete'", "complete edit")
    neovim.type("ggdd")
    neovim.wait_for_lua(f"{STATE} == nil", "dropped edit")
    neovim.type("<Tab>")
    assert neovim.lines() == CODE.splitlines()[1:]


def test_the_instruction_is_asked_for_and_a_refusal_is_told(edit):
    neovim = edit(CODE)
    neovim.lua("vim.notify = function(text) vim.g.told = text end")
    neovim.type("gg:Draftline edit<CR>")
    neovim.wait_for_lua("vim.fn.mode() == 'c'", "question")
    neovim.type(f"{RENAME}<CR>")
    neovim.wait_for_lua(f"{STATE} ~= nil or vim.g.told ~= nil", "edit of one line")
    neovim.type("<Esc>")
    neovim.command("Draftline off file")
    neovim.wait_for_lua("(vim.g.told or ''):match('off for this file')", "file that is off")
    neovim.lua("vim.g.told = nil")
    start_edit(neovim)
    neovim.wait_for_lua("(vim.g.told or ''):match('switched off for this file')", "refusal")
    assert neovim.lua(f"return {STATE}") is None
