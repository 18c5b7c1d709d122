"""Quiet controls in the real Neovim with the real server and model: what keeps suggestions away, and until when."""

from __future__ import annotations

import json

import pytest

from tests.e2e.sample_documents import ADD, MULTIPLY

pytestmark = [pytest.mark.neovim, pytest.mark.real_model]

QUIET = "(require('draftline.status').latest() or {}).quiet"


def wait_for_quiet(neovim, expected: str) -> None:
    """Wait until the server's sentence on quiet controls matches a Lua pattern; "^$" where there are suggestions."""
    neovim.wait_for_lua(f"({QUIET} or '?'):match({json.dumps(expected)})", f"status {expected!r}")


ANSWERED = """(function()
  local requests = require('draftline.requests')
  local newest = requests.open[requests.newest]
  return newest and newest.is_answered and newest.origin.head == HEAD
end)()"""


def wait_for_reply(neovim, head: str) -> None:
    """Wait until the server has answered the request with this text before the cursor."""
    neovim.wait_for_lua(ANSWERED.replace("HEAD", json.dumps(head)), f"reply after {head!r}")


def test_manual_mode_sends_no_request_in_200_typed_keys_and_the_key_for_a_request_still_works(edit, engine_room):
    neovim = edit(MULTIPLY, options='settings = { trigger = "manual" }')
    before = engine_room.completions()
    typed = ("total = first(a) + second(b)  # " * 7)[:198] + "re"
    neovim.type("A")
    for count, key in enumerate(typed, 1):
        neovim.type(key)
        wait_for_reply(neovim, f"    {typed[:count]}")
    asked = neovim.lua("return #vim.tbl_filter(function(one) return one:match('inlineCompletion$') end, sent)")
    assert asked >= 200, "the server counts the requests that manual mode refuses"
    assert engine_room.completions() == before
    assert not any(neovim.ghosts)
    neovim.type("<Esc>ccre<M-\\>")
    neovim.wait_for_ghost()
    engine_room.wait_for_completions("", before)


def test_a_switch_to_manual_mode_and_back_acts_on_the_next_key(edit):
    neovim = edit(MULTIPLY)
    neovim.type("Are")
    neovim.wait_for_ghost(lambda ghost: ghost == "turn a * b")
    neovim.type("<Cmd>Draftline manual<CR>")
    neovim.wait_for_no_ghost()
    assert neovim.lua("return require('draftline').status()") == "draftline ⏸"
    neovim.type("t")
    wait_for_reply(neovim, "    ret")
    assert neovim.screen.ghost_text() == ""
    neovim.type("<Cmd>Draftline automatic<CR>")
    wait_for_quiet(neovim, "^$")
    neovim.type("u")
    neovim.wait_for_ghost(lambda ghost: ghost == "rn a * b")


def test_comments_and_strings_get_suggestions_only_on_request(edit):
    neovim = edit(ADD, options="settings = { in_comments = false, in_strings = false }")
    for typed in ("# Multiply two num", "name = 'the prod"):
        neovim.type(f"cc{typed}")
        wait_for_reply(neovim, typed)
        assert not any(neovim.ghosts), typed
        neovim.type("<M-\\>")
        neovim.wait_for_ghost()
        neovim.type("<Esc>")
        neovim.wait_for_no_ghost()
        neovim.ghosts.clear()
    neovim.type("ccdef multiply(a, b):<CR>re")
    neovim.wait_for_ghost(lambda ghost: ghost == "turn a * b")


def test_the_snooze_ends_by_itself(edit, tmp_path):
    neovim = edit(MULTIPLY, clock=True)
    neovim.command("Draftline snooze 10")
    wait_for_quiet(neovim, "snoozed until")
    neovim.type("Are")
    wait_for_reply(neovim, "    re")
    assert not any(neovim.ghosts)
    (tmp_path / "clock").write_text("601")
    neovim.type("t")
    neovim.wait_for_ghost(lambda ghost: ghost == "urn a * b")
    wait_for_quiet(neovim, "^$")


@pytest.mark.parametrize("scope", ["language", "file"])
def test_what_is_switched_off_survives_a_restart_of_the_editor(edit, scope):
    first = edit(MULTIPLY)
    first.command(f"Draftline off {scope}")
    wait_for_quiet(first, f"off for this {scope}")
    first.close()
    second = edit(MULTIPLY)
    second.type("Are")
    wait_for_reply(second, "    re")
    wait_for_quiet(second, f"off for this {scope}")
    assert not any(second.ghosts)
    second.command(f"Draftline on {scope}")
    wait_for_quiet(second, "^$")
    second.type("t")
    second.wait_for_ghost(lambda ghost: ghost == "urn a * b")


def test_the_status_is_about_the_buffer_that_was_entered_before_any_key(edit, tmp_path):
    neovim = edit(MULTIPLY, name="first.lua", options='settings = { languages_off = { "lua" } }')
    neovim.type("gg0")  # where the cursor is in the other buffer, too
    wait_for_quiet(neovim, "off for this language")
    (tmp_path / "second.py").write_text(ADD)
    neovim.command(f"edit {tmp_path}/second.py")
    wait_for_quiet(neovim, "^$")
    neovim.command("buffer first.lua")
    wait_for_quiet(neovim, "off for this language")


def test_the_command_for_a_larger_model_says_when_none_is_offered(edit):
    neovim = edit(MULTIPLY)
    neovim.lua("vim.notify = function(text) notified = text end")
    neovim.command("Draftline get_model")
    neovim.wait_for_lua("(notified or ''):match('^draftline: No better model')", "the server's sentence")
