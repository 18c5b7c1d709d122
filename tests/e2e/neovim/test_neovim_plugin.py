"""The Neovim plugin without a server: options, remainders, keys, messages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.editor_latency.neovim_driver import NeovimError
from tests.narrowing_cases import NARROWING_CASES

pytestmark = pytest.mark.neovim

REMAINDER = """
local text, head, tail, replaced, closers, grows, now, now_row, now_column = ...
local offers = require("draftline.offer")
local bufnr = vim.api.nvim_get_current_buf()
local origin = { bufnr = bufnr, row = 0, column = #head, head = head, tail = tail }
local range = { start = { line = 0, character = #head }, ["end"] = { line = 0, character = #head + replaced } }
local command = { command = "draftline.accepted", arguments = { "x", 0 } }
local raw = { insertText = text, range = range, closers = closers, command = command }
local offer = offers.read({ raw }, origin, "utf-8")
offer.is_done = not grows
vim.api.nvim_buf_set_lines(0, 0, -1, true, vim.split(now, "\\n"))
local line = vim.api.nvim_buf_get_lines(0, now_row, now_row + 1, true)[1]
local cursor = { bufnr = bufnr, row = now_row, column = now_column }
cursor.head, cursor.tail = line:sub(1, now_column), line:sub(now_column + 1)
local remainder = offers.remainder(offer, cursor)
return remainder and { remainder.text, #remainder.replaced } or vim.NIL
"""


def left_of(neovim, *, then, text, now, replaced=0, closers=(), grows=False, **_):
    """Return what is left at the bar in `now` of a text that was suggested at the bar in the line `then`."""
    before = now.partition("|")[0].split("\n")
    place = len(before) - 1, len(before[-1].encode())
    return neovim.lua(REMAINDER, text, *then.split("|"), replaced, list(closers), grows, now.replace("|", ""), *place)


def test_what_is_left_of_a_suggestion_after_typing(open_neovim):
    neovim = open_neovim()
    left = {case["case"]: left_of(neovim, **case) for case in NARROWING_CASES}
    assert left == {case["case"]: case["left"] for case in NARROWING_CASES}


def test_windows_line_ends_become_line_feeds(open_neovim):
    left = left_of(open_neovim(), then="x = |", text="if a:\r\n  b\r\n", now="x = |")
    assert left == ["if a:\n  b\n", 0]


def test_a_misspelt_option_is_named_with_the_nearest_one(open_neovim):
    with pytest.raises(NeovimError, match=r"no option `keys.acept`; did you mean `keys.accept`"):
        open_neovim().lua('require("draftline").setup({ keys = { acept = "<C-y>" } })')


def test_an_option_of_the_wrong_type_is_named(open_neovim):
    with pytest.raises(NeovimError, match="option `cmd` must be a table"):
        open_neovim().lua('require("draftline").setup({ cmd = "python" })')


def test_a_misspelt_server_setting_is_named_with_the_nearest_one(open_neovim):
    neovim = open_neovim()
    neovim.lua('require("draftline").setup({ settings = { maxTokens = 5, prepare_ms = 0 } })')
    with pytest.raises(NeovimError, match=r"no option `settings.max_tokn`; did you mean `settings.max_tokens`"):
        neovim.lua('require("draftline").setup({ settings = { max_tokn = 5 } })')


def lay_trap(folder):
    """Write a package with the server's name that leaves a file when Python executes it."""
    (folder / "lsp_server").mkdir()
    (folder / "lsp_server" / "__init__.py").write_text("open('executed', 'w').close()\n")


def test_the_health_check_runs_no_code_of_the_current_folder(open_neovim, tmp_path):
    python = json.dumps(sys.executable)
    neovim = open_neovim(f'require("draftline").setup({{ cmd = {{ {python}, "-m", "lsp_server", "--stdio" }} }})')
    lay_trap(tmp_path)
    lay_trap(Path(neovim.lua('return require("draftline.server").working_folder()')))
    neovim.command(f"cd {tmp_path}")
    neovim.command("checkhealth draftline")
    assert not list(tmp_path.rglob("executed"))
    assert "can be started" in "\n".join(neovim.lines())


def test_the_default_command_runs_no_code_of_the_current_folder(open_neovim, tmp_path):
    neovim = open_neovim('require("draftline").setup({})')
    program, *words = neovim.lua("return vim.lsp.config.draftline.cmd")
    assert program == "python"
    lay_trap(tmp_path)
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, stdin=subprocess.DEVNULL, check=False)
    assert not list(tmp_path.rglob("executed"))
    assert done.returncode == 0


def test_keys_are_mapped_only_while_a_suggestion_is_shown(open_neovim):
    neovim = open_neovim()
    neovim.lua('vim.keymap.set("i", "<Tab>", "mine", { buffer = 0 })')
    tab = 'return vim.fn.maparg("<Tab>", "i", false, true).rhs or "taken"'
    assert neovim.lua(tab) == "mine"
    neovim.lua('require("draftline.keys").map(0)')
    assert neovim.lua(tab) == "taken"
    neovim.lua('require("draftline.keys").restore(0)')
    assert neovim.lua(tab) == "mine"
    assert neovim.lua('return vim.fn.maparg("<M-]>", "i")') == ""


def test_the_command_reports_the_status_and_unknown_subcommands(open_neovim):
    neovim = open_neovim()
    assert neovim.request("nvim_exec2", "Draftline status", {"output": True})["output"].startswith("draftline: ")
    with pytest.raises(NeovimError, match="no `:Draftline nonsense`; use one of automatic, disable, edit, enable"):
        neovim.command("Draftline nonsense")


def test_the_health_check_works_for_a_server_that_runs_already(open_neovim):
    connects = 'vim.lsp.config("draftline", { cmd = vim.lsp.rpc.connect("127.0.0.1", 9) })'
    neovim = open_neovim(f'{connects}\nvim.lsp.enable("draftline")')
    neovim.command("checkhealth draftline")
    assert "connects to a running server" in "\n".join(neovim.lines())


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("snooze soon", "draftline: `soon` is not a number of minutes"),
        ("snoze", "draftline: there is no `:Draftline snoze`; use one of automatic, "),
    ],
)
def test_a_mistyped_command_is_a_sentence_without_a_traceback(open_neovim, command, sentence):
    neovim = open_neovim("vim.notify = function(text) notified = text end")
    neovim.lua(f"vim.cmd.Draftline({{ args = vim.split('{command}', ' ') }})")
    assert neovim.lua("return notified").startswith(sentence)
