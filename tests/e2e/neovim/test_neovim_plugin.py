"""The Neovim plugin without a server: options, remainders, words and lines, keys, messages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.editor_latency.neovim_driver import NeovimError

pytestmark = pytest.mark.neovim

OFFER = """
local origin = { bufnr = 0, row = 0, column = #HEAD, head = HEAD, tail = TAIL, closed = 0 }
origin.bufnr = vim.api.nvim_get_current_buf()
local range = { start = { line = 0, character = #HEAD }, ["end"] = { line = 0, character = #HEAD + REPLACED } }
local offer = require("draftline.offer").read({ { insertText = TEXT, range = range } }, origin, "utf-8", "x")
vim.api.nvim_buf_set_lines(0, 0, -1, true, vim.split(NOW, "\\n"))
local now = { bufnr = origin.bufnr, row = ROW, column = COLUMN }
local line = vim.api.nvim_buf_get_lines(0, ROW, ROW + 1, true)[1]
now.head, now.tail = line:sub(1, COLUMN), line:sub(COLUMN + 1)
local remainder = require("draftline.offer").remainder(offer, now)
return remainder and { remainder.text, remainder.replaced } or vim.NIL
"""


def remainder_of(neovim, text, now, *, head="x = ", tail="", replaced=0):
    """Return what remains at the bar in `now` of `text`, which was suggested between `head` and `tail`."""
    before = now.partition("|")[0].split("\n")
    names = {"HEAD": head, "TAIL": tail, "TEXT": text, "NOW": now.replace("|", ""), "REPLACED": replaced}
    names |= {"ROW": len(before) - 1, "COLUMN": len(before[-1].encode())}
    return neovim.lua(
        "\n".join(f"local {name} = select({i}, ...)" for i, name in enumerate(names, 1)) + OFFER, *names.values()
    )


def test_typing_a_suggestion_narrows_it(open_neovim):
    neovim = open_neovim()
    assert remainder_of(neovim, "foo(bar)", "x = |") == ["foo(bar)", ""]
    assert remainder_of(neovim, "foo(bar)", "x = foo|") == ["(bar)", ""]
    assert remainder_of(neovim, "foo(\n  bar)", "x = foo(\n  b|") == ["ar)", ""]
    assert remainder_of(neovim, "é😀ü", "x = é😀|") == ["ü", ""]


def test_typing_something_else_leaves_no_remainder(open_neovim):
    neovim = open_neovim()
    assert remainder_of(neovim, "foo", "x = g|") is None
    assert remainder_of(neovim, "foo", "y = f|") is None
    assert remainder_of(neovim, "foo", "x =|") is None
    assert remainder_of(neovim, "foo", "x = f| + 1") is None


def test_a_closer_that_the_suggestion_contains_is_replaced(open_neovim):
    neovim = open_neovim()
    assert remainder_of(neovim, "1, 2)", "f(1|)", head="f(", tail=")", replaced=1) == [", 2)", ")"]
    assert remainder_of(neovim, "f(1)", "x = f(|)") == ["1)", ")"], "auto-pairing added the closer"
    assert remainder_of(neovim, "f(g(x)))", "x = f(g(|)))", tail=")", replaced=1) == ["x)))", ")))"]


def test_a_closer_that_auto_pairing_added_stays_behind_a_suggestion_that_does_not_contain_it(open_neovim):
    neovim = open_neovim()
    assert remainder_of(neovim, "f(order", "x = f(|)") == ["order", ""]
    assert remainder_of(neovim, 'f("not found', 'x = f("|")') == ["not found", ""]
    assert remainder_of(neovim, 'f("a"', 'x = f("|")') == ['a"', '"']
    assert remainder_of(neovim, "f(g(x)", "x = f(g(|))") == ["x)", ")"]


def test_a_closer_of_the_suggestion_can_be_typed_over(open_neovim):
    neovim = open_neovim()
    assert remainder_of(neovim, "x) + 1", "f(x)|", head="f(", tail=")", replaced=1) == [" + 1", ""]
    assert remainder_of(neovim, "x)) + 1", "g(f(x)|)", head="g(f(", tail="))", replaced=2) == [") + 1", ")"]
    assert remainder_of(neovim, "x", "f(x)|", head="f(", tail=")") is None, "the suggestion does not contain it"
    assert remainder_of(neovim, "x) + 1", "f(x)|", head="f(", tail=")") is None, "the suggestion does not replace it"
    moved = remainder_of(neovim, "\n  g(x)\n)", "f(\n  g(x)|\n)", head="f(", tail=")", replaced=1)
    assert moved is None, "the closer is on another line now"


def test_a_quote_can_be_typed_over_before_auto_pairing_closes_a_bracket(open_neovim):
    neovim = open_neovim()
    call = {"head": 'f("', "tail": '")', "replaced": 2}
    assert remainder_of(neovim, '?", (book.title))', 'f("?", (b|))', **call) == ["ook.title))", "))"]
    assert remainder_of(neovim, '?", (book.title))', 'f("?", |)', **call) == ["(book.title))", ")"]
    assert remainder_of(neovim, '?", (book', 'f("?", (b|))', **(call | {"replaced": 1})) == ["ook", ""]
    assert remainder_of(neovim, '?(b)")', 'f("?(|))', **call) is None, "the quote was deleted"


def test_windows_line_ends_become_line_feeds(open_neovim):
    assert remainder_of(open_neovim(), "if a:\r\n  b\r\n", "x = |") == ["if a:\n  b\n", ""]


@pytest.mark.parametrize(
    ("text", "word"),
    [("foo(bar)", "foo"), (" + b", " +"), ("\n    return x", "\n    return"), ("(a, b)", "("), ("größe = 1", "größe")],
)
def test_the_first_word(open_neovim, text, word):
    assert open_neovim().lua('return require("draftline.offer").first_word(...)', text) == word


@pytest.mark.parametrize(("text", "line"), [("a + b\nc", "a + b"), ("\n  c\nd", "\n  c"), ("only", "only")])
def test_the_first_line(open_neovim, text, line):
    assert open_neovim().lua('return require("draftline.offer").first_line(...)', text) == line


@pytest.mark.parametrize(
    ("text", "part", "replaced", "closed"),
    [
        ("foo(x), bar)", "foo(x),", ")", 0),
        ("foo(x), bar)", "foo(x), bar)", ")", 1),
        ("x), bar)", "x),", ")", 0),  # `foo(` was accepted before
        ("x), bar)", "x),", "))", 1),  # it was typed, and the editor added its closer
        ("1)])", "1)]", ")])", 2),
        ('a", b["c"])', 'a",', '")', 1),
        ("a, b", "a,", ")", 0),
    ],
)
def test_a_part_replaces_only_closers_of_brackets_that_the_text_does_not_open(
    open_neovim, text, part, replaced, closed
):
    assert open_neovim().lua('return require("draftline.offer").closed_by(...)', text, part, replaced) == closed


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
