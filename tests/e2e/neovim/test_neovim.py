"""Real Neovim, real server, real default model: what the user sees and does at the cursor."""

from __future__ import annotations

import json
from itertools import pairwise

import psutil
import pytest

from tests.e2e.sample_documents import CART, LIBRARY, MULTIPLY

pytestmark = [pytest.mark.neovim, pytest.mark.real_model]

BUILT_IN = 'vim.lsp.config("draftline", { COMMAND }) vim.lsp.enable("draftline")'


def line(neovim) -> str:
    return neovim.request("nvim_get_current_line")


def wait_for_line(neovim, expected: str) -> None:
    neovim.wait_for_lua(f"vim.api.nvim_get_current_line() == {json.dumps(expected)}", f"line {expected!r}")


def full_ghost(neovim, end: str) -> str:
    """Wait until the complete suggestion is on the screen."""
    return neovim.wait_for_ghost(lambda ghost: ghost.endswith(end))


def test_neovims_own_inline_completion_shows_a_suggestion_and_tab_accepts_it(edit):
    neovim = edit(MULTIPLY, lua=BUILT_IN)
    neovim.type("Are")
    assert neovim.wait_for_ghost() == "turn a * b"
    neovim.type("<Tab>")
    wait_for_line(neovim, "    return a * b")
    neovim.wait_for_no_ghost()
    assert "workspace/executeCommand" in neovim.lua("return sent")


def test_neovims_own_inline_completion_accepts_after_typing_without_a_stray_character(edit):
    neovim = edit(MULTIPLY, lua=BUILT_IN)
    neovim.type("Are")
    neovim.wait_for_ghost()
    neovim.type("tu<Tab>")
    wait_for_line(neovim, "    return a * b")


def test_tab_inserts_a_tab_without_a_suggestion(edit):
    neovim = edit(MULTIPLY, lua=BUILT_IN)
    neovim.type("A<Tab>")
    wait_for_line(neovim, "        ")


def test_ghost_text_grows_while_it_is_generated_and_tab_accepts_it(edit):
    neovim = edit(LIBRARY, options="settings = { whole_lines = true }")
    neovim.type("A")
    neovim.wait_for(lambda: len(set(neovim.ghosts) - {""}) > 1, "text that grows")
    grown = [ghost for ghost in neovim.ghosts if ghost]
    assert all(after.startswith(before) for before, after in pairwise(grown))
    neovim.type("<Tab>")
    accepted = json.dumps("        " + grown[0].splitlines()[0])
    neovim.wait_for_lua(f"vim.fn.getline(10):find({accepted}, 1, true)", "the accepted text")


def test_typing_a_suggestion_narrows_it_without_flicker_or_a_new_request(edit):
    neovim = edit(MULTIPLY)
    neovim.type("Are")
    full_ghost(neovim, "b")
    requests = "return vim.iter(sent):filter(function(m) return m == 'textDocument/inlineCompletion' end):totable()"
    before = len(neovim.lua(requests))
    neovim.ghosts.clear()
    for typed, remainder in (("t", "urn a * b"), ("u", "rn a * b"), ("rn", " a * b")):
        neovim.type(typed)
        neovim.wait_for_ghost(lambda ghost, remainder=remainder: ghost == remainder)
    assert "" not in neovim.ghosts
    assert len(neovim.lua(requests)) == before


def test_typing_something_else_removes_the_suggestion_and_reports_a_rejection(edit):
    neovim = edit(MULTIPLY)
    neovim.type("Are")
    full_ghost(neovim, "b")
    neovim.type("x")
    neovim.wait_for(lambda: not neovim.screen.ghost_text().startswith("turn"), "the old suggestion to go")
    assert "draftline/didRejectCompletion" in neovim.lua("return sent")
    assert line(neovim) == "    rex"


def test_several_lines_are_shown_and_accepted(edit):
    neovim = edit(CART)
    neovim.type("A")
    full_ghost(neovim, "del self.prices[name]")
    neovim.type("<Tab>")
    wait_for_line(neovim, "            del self.prices[name]")
    assert neovim.lines()[-2:] == ["        if name in self.prices:", "            del self.prices[name]"]


def test_a_request_for_alternatives_keeps_a_suggestion_on_the_screen(edit):
    neovim = edit(MULTIPLY)
    neovim.type("Are")
    full_ghost(neovim, "b")
    requests = "#vim.tbl_filter(function(m) return m == 'textDocument/inlineCompletion' end, sent)"
    before = neovim.lua(f"return {requests}")
    neovim.type("<M-]>")
    neovim.wait_for_lua(f"{requests} > {before}", "another request")
    neovim.wait_for_ghost(lambda ghost: ghost.startswith("turn"))


def test_accepting_a_word_then_the_line(edit):
    neovim = edit(MULTIPLY)
    neovim.type("Are")
    full_ghost(neovim, "b")
    neovim.type("<M-Right>")
    wait_for_line(neovim, "    return")
    assert full_ghost(neovim, "b") == " a * b"
    assert "textDocument/didPartiallyAcceptCompletion" in neovim.lua("return sent")
    neovim.type("<M-C-Right>")
    wait_for_line(neovim, "    return a * b")


def test_dismissing_removes_the_suggestion_and_keeps_the_text(edit):
    neovim = edit(MULTIPLY)
    neovim.type("Are")
    full_ghost(neovim, "b")
    neovim.type("<C-]>")
    neovim.wait_for_no_ghost()
    assert line(neovim) == "    re"


def test_one_undo_removes_what_was_accepted_and_nothing_else(edit):
    neovim = edit(MULTIPLY)
    neovim.type("Are")
    full_ghost(neovim, "b")
    neovim.type("<Tab>")
    wait_for_line(neovim, "    return a * b")
    neovim.type(" # typed<Esc>u")
    wait_for_line(neovim, "    return a * b")
    neovim.type("u")
    wait_for_line(neovim, "    re")


def test_fast_typing_with_late_replies(edit):
    neovim = edit(MULTIPLY)
    neovim.type("A")
    for character in "result = b * a":
        neovim.type(character)
    neovim.wait_for(lambda: any("result = b * a" in row for row in neovim.screen.lines()), "the typed text")
    neovim.type("<CR>re")
    shown = neovim.wait_for_ghost(lambda ghost: ghost.startswith("turn"))
    neovim.type("<Tab>")
    neovim.wait_for_lua(
        f"vim.startswith(vim.api.nvim_get_current_line(), {json.dumps('    re' + shown)})", "the accepted text"
    )
    assert neovim.lines()[-2] == "    result = b * a"


def test_windows_line_ends_are_kept(edit):
    neovim = edit(MULTIPLY.replace("\n", "\r\n"))
    assert neovim.lua("return vim.bo.fileformat") == "dos"
    neovim.type("Are")
    assert full_ghost(neovim, "b") == "turn a * b"
    neovim.type("<Tab>")
    wait_for_line(neovim, "    return a * b")
    assert not any("\r" in row for row in neovim.lines())


def test_wide_and_combined_characters_before_the_cursor(edit):
    neovim = edit('first = "é😀 👩‍👩‍👧"; second = "ü"\n\nprint(first)\nprint("é😀 👩‍👩‍👧", sec')
    neovim.type("A")
    neovim.type("<M-\\>")
    shown = neovim.wait_for_ghost(lambda ghost: ghost.startswith("ond"))
    neovim.type("<Tab>")
    neovim.wait_for_lua("vim.api.nvim_get_current_line():find('second', 1, true)", "the accepted text")
    assert line(neovim).startswith('print("é😀 👩‍👩‍👧", sec' + shown)


def test_two_windows_share_one_engine(edit, engine_room):
    windows = [edit(MULTIPLY), edit(MULTIPLY, name="other.py")]
    for neovim in windows:
        neovim.type("Are")
    assert {full_ghost(neovim, "b") for neovim in windows} == {"turn a * b"}
    assert len(engine_room.hosts()) == 1


def test_the_next_key_restarts_a_killed_engine(edit, engine_room):
    neovim = edit(MULTIPLY)
    for host in engine_room.hosts():
        host.kill()
    psutil.wait_procs(engine_room.hosts(), timeout=10)
    neovim.type("Are")
    assert neovim.wait_for_ghost(lambda ghost: ghost == "turn a * b", timeout_s=60)
    assert not neovim.errors


def test_the_server_is_restarted(edit):
    neovim = edit(MULTIPLY)
    before = neovim.lua("return require('draftline.server').client(0).id")
    neovim.command("Draftline restart")
    client = "require('draftline.server').client(0)"
    neovim.wait_for_lua(f"{client} and {client}.id ~= {before} and {client}.initialized", "a new server")
    neovim.type("Are")
    assert full_ghost(neovim, "b") == "turn a * b"


def test_a_shown_suggestion_and_a_pausing_cursor_are_reported_after_their_delays(edit):
    neovim = edit(MULTIPLY, options="read_delay_ms = 30, rest_delay_ms = 30")
    neovim.wait_for_lua("vim.list_contains(sent, 'draftline/didMoveCursor')", "report of the cursor")
    neovim.type("Are")
    full_ghost(neovim, "b")
    neovim.wait_for_lua("vim.list_contains(sent, 'textDocument/didShowCompletion')", "report of the suggestion")


def test_leaving_insert_mode_dismisses_the_suggestion(edit):
    neovim = edit(MULTIPLY)
    neovim.type("Are")
    full_ghost(neovim, "b")
    neovim.type("<Esc>")
    neovim.wait_for_no_ghost()
    assert neovim.lua("return vim.fn.maparg('<Tab>', 'i', false, true).desc") != "draftline"


def test_leaving_insert_mode_refuses_nothing_so_the_next_line_gets_a_suggestion_at_once(edit):
    neovim = edit(MULTIPLY)
    neovim.type("Are")
    full_ghost(neovim, "b")
    neovim.type("<Esc>")
    neovim.wait_for_no_ghost()
    neovim.type("ccre")
    full_ghost(neovim, "b")
    rejections = "return vim.iter(sent):filter(function(m) return m == 'draftline/didRejectCompletion' end):totable()"
    assert len(neovim.lua(rejections)) == 1  # as moved


def test_the_status_line_and_the_health_check_report_no_problem(edit):
    neovim = edit(MULTIPLY)
    assert neovim.lua("return require('draftline').status()") == "draftline ✓"
    neovim.command("checkhealth draftline")
    report = "\n".join(neovim.lines())
    assert "can be started" in report
    assert "ERROR" not in report, report
