"""The plugin and a server inside Neovim that sends exactly the messages that each test needs."""

from __future__ import annotations

import json

import pytest

from tests.narrowing_cases import closers_sent

pytestmark = pytest.mark.neovim


def partial(*texts: str, character: int, done: bool = False, version: str = "nil") -> str:
    """Return Lua code that sends growing text for a request at a column of line 0.

    `version` is the version of the document at that request, in Lua; nil: that of the last request at the column.
    """
    position = f"{{ line = 0, character = {character} }}"
    items = json.dumps([{"text": text, "closers": closers_sent(text)} for text in texts])
    return (
        f"tell('draftline/partialCompletion', {{ uri = vim.uri_from_bufnr(0), version = {version}, "
        f"position = {position}, done = {str(done).lower()}, "
        f"items = items_at(vim.json.decode([==[{items}]==]), {position}) }})"
    )


def accept(neovim):
    """Accept the remainder and wait until the server knows."""
    neovim.type("<Tab>")
    neovim.wait_for_lua("#accepted > 0", "the accepted command")


def test_alternatives_join_the_suggestion_on_the_screen_but_not_a_dismissed_one(serve):
    neovim = serve({"x = ": [{"text": "one"}]})
    neovim.type("ix = ")
    neovim.wait_for_ghost(lambda ghost: ghost == "one")
    neovim.lua(partial("one", "two", character=4, done=True))
    neovim.wait_for(lambda: "1/2" in neovim.screen.lines()[0], "the count")
    neovim.type("<M-]>")
    neovim.wait_for_ghost(lambda ghost: ghost == "two")
    neovim.type("<C-]>")
    neovim.wait_for_no_ghost()
    neovim.lua(partial("one", "two", "three", character=4, done=True))
    assert not neovim.lua("return require('draftline.session').is_visible()")


def test_a_deletion_asks_the_server_whether_the_suggestion_may_stay(serve):
    neovim = serve({"x = ": [{"text": "return value"}]})
    neovim.type("ix = ")
    neovim.wait_for_ghost(lambda ghost: ghost == "return value")
    neovim.type("re")
    neovim.wait_for_ghost(lambda ghost: ghost == "turn value")
    neovim.type("<BS>")
    neovim.wait_for_no_ghost()
    neovim.wait_for_lua("versions[5]", "a request at the new cursor")


def test_cycling_requests_more_wraps_around_and_accepts_the_shown_suggestion(serve):
    two = [{"text": "one"}, {"text": "two"}]
    neovim = serve({"x = ": two[:1]}, more={"x = ": two})
    neovim.type("ix = ")
    neovim.wait_for_ghost(lambda ghost: ghost == "one")
    neovim.type("<M-]>")
    neovim.wait_for_ghost(lambda ghost: ghost == "two")
    neovim.wait_for(lambda: "2/2" in neovim.screen.lines()[0], "the count")
    neovim.type("<M-]>")
    neovim.wait_for_ghost(lambda ghost: ghost == "one")
    neovim.type("<M-[>")
    neovim.wait_for_ghost(lambda ghost: ghost == "two")
    accept(neovim)
    assert neovim.lines() == ["x = two"]
    assert neovim.lua("return accepted") == [["offer", 1]]


def test_cycling_skips_what_no_longer_matches_and_requests_more_if_nothing_else_matches(serve):
    three = [{"text": "value"}, {"text": "other"}, {"text": "valid"}]
    more = {"x = vali": [{"text": "d"}, {"text": "ant"}]}
    neovim = serve({"x = ": three}, more=more)
    neovim.type("ix = ")
    neovim.wait_for_ghost(lambda ghost: ghost == "value")
    neovim.type("va")
    neovim.wait_for_ghost(lambda ghost: ghost == "lue")
    neovim.type("<M-]>")
    neovim.wait_for_ghost(lambda ghost: ghost == "lid")
    neovim.type("li")
    neovim.wait_for_ghost(lambda ghost: ghost == "d")
    neovim.type("<M-]>")
    neovim.wait_for_ghost(lambda ghost: ghost == "ant")
    accept(neovim)
    assert neovim.lines() == ["x = valiant"]


def test_typing_onto_an_alternative_shows_it_rejects_nothing_and_counts_what_still_matches(serve):
    neovim = serve({"x = ": [{"text": "value"}, {"text": "other"}, {"text": "vector"}, {"text": "vectors"}]})
    neovim.type("ix = ")
    neovim.wait_for_ghost(lambda ghost: ghost == "value")
    neovim.wait_for(lambda: "1/4" in neovim.screen.lines()[0], "the count")
    neovim.type("v")
    neovim.wait_for(lambda: "1/3" in neovim.screen.lines()[0], "the count of what still matches")
    neovim.type("e")
    neovim.wait_for_ghost(lambda ghost: ghost == "ctor")
    neovim.wait_for(lambda: "1/2" in neovim.screen.lines()[0], "the count of what still matches")
    neovim.type("ctor")
    neovim.wait_for_ghost(lambda ghost: ghost == "s")
    assert not neovim.lua("return vim.list_contains(sent, 'draftline/didRejectCompletion')")
    accept(neovim)
    assert neovim.lua("return accepted") == [["offer", 3]]
    assert neovim.lines() == ["x = vectors"]


def test_a_suggestion_that_replaces_a_closer_is_drawn_around_it_and_replaces_it(serve):
    neovim = serve({"f(": [{"text": "a, b) + 1", "replaced": ")"}]})
    neovim.lua("vim.keymap.set([[i]], [[(]], [[()<Left>]]) vim.o.cursorline = true")
    neovim.type("if(")
    neovim.wait_for_ghost(lambda ghost: ghost == "a, b + 1")  # not in the colours of the highlighted bracket
    assert neovim.screen.lines()[0] == "f(a, b) + 1"
    neovim.type("<Tab>")
    neovim.wait_for_lua("vim.api.nvim_get_current_line() == 'f(a, b) + 1'", "the accepted text")
    assert neovim.request("nvim_win_get_cursor", 0) == [1, len("f(a, b) + 1")]


@pytest.mark.parametrize(
    ("key", "text", "accepted"),
    [
        ("<M-Right>", "foo(bar)", "foo"),
        ("<M-Right>", " + b", " +"),
        ("<M-Right>", "\n    return x", "\n    return"),
        ("<M-Right>", "(a, b)", "("),
        ("<M-Right>", "größe = 1", "größe"),
        ("<M-C-Right>", "a + b\nc", "a + b"),
        ("<M-C-Right>", "\n  c\nd", "\n  c"),
        ("<M-C-Right>", "only", "only"),
    ],
)
def test_the_next_word_and_the_next_line_are_accepted(serve, key, text, accepted):
    neovim = serve({"x": [{"text": text}]})
    neovim.type("ix")
    neovim.wait_for_ghost()
    neovim.type(key)
    neovim.wait_for_lua(
        "#vim.api.nvim_buf_get_lines(0, 0, -1, true)[1] > 1 or vim.api.nvim_buf_line_count(0) > 1", "a part"
    )
    assert "\n".join(neovim.lines()) == "x" + accepted


def test_accepting_words_keeps_the_closer_of_an_earlier_bracket(serve):
    neovim = serve({"print(": [{"text": "foo(x), bar)", "replaced": ")"}]}, text="print()")
    neovim.type("f)i<M-\\>")
    neovim.wait_for_ghost()
    for accepted in ("print(foo)", "print(foo()", "print(foo(x)", "print(foo(x),)", "print(foo(x), bar)"):
        neovim.type("<M-Right>")
        neovim.wait_for_lua(f"vim.api.nvim_get_current_line() == '{accepted}'", f"line {accepted!r}")
    accept(neovim)
    assert neovim.lines() == ["print(foo(x), bar)"]


def test_moving_over_a_closer_of_the_suggestion_narrows_it_and_rejects_nothing(serve):
    neovim = serve({"f(": [{"text": "a) + 1", "replaced": ")"}]})
    neovim.lua("vim.keymap.set([[i]], [[(]], [[()<C-g>U<Left>]]) vim.keymap.set([[i]], [[)]], [[<C-g>U<Right>]])")
    neovim.type("if(")
    neovim.wait_for_ghost(lambda ghost: ghost == "a + 1")
    neovim.type("a)")
    neovim.wait_for_ghost(lambda ghost: ghost == " + 1")
    accept(neovim)
    assert neovim.lines() == ["f(a) + 1"]
    assert not neovim.lua("return vim.list_contains(sent, 'draftline/didRejectCompletion')")


def test_the_server_is_asked_where_the_editor_puts_the_closer_on_a_line_of_its_own(serve):
    neovim = serve({"f ": [{"text": "{\n  a;\n}"}], "  ": [{"text": "a;"}]})
    neovim.lua("vim.keymap.set([[i]], [[{]], [[{}<Left>]]) vim.keymap.set([[i]], [[<CR>]], [[<CR><CR><Up>  ]])")
    neovim.type("if ")
    neovim.wait_for_ghost(lambda ghost: ghost == "{\n  a;\n}")
    neovim.type("{<CR>")
    neovim.wait_for_ghost(lambda ghost: ghost == "a;")
    accept(neovim)
    assert neovim.lines() == ["f {", "  a;", "}"]


def test_lines_below_the_cursor_are_drawn_and_inserted(serve):
    neovim = serve({"if x:": [{"text": "\n\treturn 1\nreturn 2"}]}, text="\nend\n")
    neovim.type("iif x:")
    assert neovim.wait_for_ghost() == " " * 8 + "return 1\nreturn 2"
    neovim.type("<Tab>")
    neovim.wait_for_no_ghost()
    assert neovim.lines() == ["if x:", "\treturn 1", "return 2", "end"]
    assert neovim.request("nvim_win_get_cursor", 0) == [3, len("return 2")]


def test_a_suggestion_grows_and_narrows_at_the_same_time(serve):
    neovim = serve({"x = ": [{"text": "first second third"}]}, held=["x = "])
    neovim.type("ix = ")
    neovim.wait_for_lua("waiting['x = ']", "the request")
    neovim.lua(partial("first", character=4))
    neovim.wait_for_ghost(lambda ghost: ghost == "first")
    neovim.type("fir")
    neovim.wait_for_ghost(lambda ghost: ghost == "st")
    neovim.lua(partial("first second", character=4))
    neovim.wait_for_ghost(lambda ghost: ghost == "st second")
    neovim.lua("waiting['x = ']()")
    neovim.wait_for_ghost(lambda ghost: ghost == "st second third")


def test_typing_ahead_of_growing_text_keeps_its_generation(serve):
    neovim = serve({"x = ": [{"text": "first second"}]}, held=["x = "])
    neovim.type("ix = ")
    neovim.wait_for_lua("waiting['x = ']", "the request")
    neovim.lua(partial("fi", character=4))
    neovim.wait_for_ghost(lambda ghost: ghost == "fi")
    neovim.type("firs")
    neovim.wait_for_no_ghost()
    neovim.lua("waiting['x = ']()")
    neovim.wait_for_ghost(lambda ghost: ghost == "t second")


def test_a_reply_for_text_that_changed_is_not_shown(serve):
    neovim = serve({"x = ": [{"text": "old"}], "x = n": [{"text": "ew"}]}, held=["x = "])
    neovim.type("ix = ")
    neovim.wait_for_lua("waiting['x = ']", "the request")
    neovim.type("n")
    neovim.wait_for_ghost(lambda ghost: ghost == "ew")
    neovim.lua("waiting['x = ']()")
    neovim.lua(partial("old and stale", character=4))
    neovim.type("e")
    neovim.wait_for_ghost(lambda ghost: ghost == "w")
    assert set(neovim.ghosts) == {"", "ew", "w"}


def test_streamed_text_for_an_older_version_of_the_document_is_not_drawn(serve):
    neovim = serve({"x = ": [{"text": "new"}]}, held=["x = "], text="\nprint(x)\n")
    neovim.type("ix = ")
    neovim.wait_for_lua("waiting['x = ']", "the request")
    neovim.lua(partial("older", character=4, version="versions[4] - 1"))
    neovim.lua(partial("ne", character=4))
    neovim.wait_for_ghost(lambda ghost: ghost == "ne")
    assert "older" not in neovim.ghosts


def test_a_request_draws_nothing_after_another_line_changed(serve):
    neovim = serve({"x = ": [{"text": "first second"}]}, held=["x = "], text="\nprint(x)\n")
    neovim.type("ix = ")
    neovim.wait_for_lua("waiting['x = ']", "the request")
    neovim.lua(partial("first", character=4))
    neovim.wait_for_ghost(lambda ghost: ghost == "first")
    before = neovim.lua("return versions[4]")
    neovim.lua("vim.api.nvim_buf_set_lines(0, 1, 2, true, { 'print(y)' })")
    neovim.wait_for_lua(f"versions[4] > {before}", "a request for the new text")
    neovim.lua(partial("first outdated", character=4, version=str(before)))
    neovim.lua(partial("another", character=4))
    neovim.wait_for_ghost(lambda ghost: ghost == "another")
    assert "first outdated" not in neovim.ghosts


def test_streamed_text_disappears_if_the_reply_is_empty(serve):
    neovim = serve({"x = ": []}, held=["x = "])
    neovim.type("ix = ")
    neovim.wait_for_lua("waiting['x = ']", "the request")
    neovim.lua(partial("bad", character=4))
    neovim.wait_for_ghost(lambda ghost: ghost == "bad")
    neovim.lua("waiting['x = ']()")
    neovim.wait_for_no_ghost()


def test_accepting_a_growing_suggestion_takes_what_is_shown_and_the_rest_follows(serve):
    neovim = serve({"x = ": [{"text": "first second"}]}, held=["x = "])
    neovim.type("ix = ")
    neovim.wait_for_lua("waiting['x = ']", "the request")
    neovim.lua(partial("first", character=4))
    neovim.wait_for_ghost(lambda ghost: ghost == "first")
    neovim.type("<Tab>")
    neovim.wait_for_lua("vim.api.nvim_get_current_line() == 'x = first'", "the accepted part")
    neovim.lua("waiting['x = ']()")
    neovim.wait_for_ghost(lambda ghost: ghost == " second")
    accept(neovim)
    assert neovim.lines() == ["x = first second"]


def test_the_completion_menu_hides_the_suggestion_until_it_closes(serve):
    neovim = serve({"xyz\nx": [], "x": [{"text": "y + z"}]}, text="xyz\n")
    neovim.type("Ox")
    neovim.wait_for_ghost(lambda ghost: ghost == "y + z")
    neovim.type("<C-n>")
    neovim.wait_for_no_ghost()
    neovim.type("<C-e>")
    neovim.wait_for_ghost(lambda ghost: ghost == "y + z")


def test_a_key_typed_right_before_tab_leaves_tab_to_the_user(serve):
    neovim = serve({"x": [{"text": "y + z"}]})
    neovim.command("inoremap <buffer> <Tab> own")
    neovim.type("ix")
    neovim.wait_for_ghost(lambda ghost: ghost == "y + z")
    neovim.type("q<Tab>w")  # Neovim tells of the change only once all keys are read
    neovim.wait_for_lua("vim.api.nvim_get_current_line() == 'xqownw'", "the user's own Tab")


def test_a_manual_request_draws_nothing_where_a_file_type_gets_no_suggestions(serve):
    without = 'require("draftline").setup({ filetypes = { text = false } })'
    neovim = serve({}, more={"x": [{"text": "y + z"}]}, start=without)
    neovim.type("ix<M-\\>q")
    neovim.wait_for_lua("vim.api.nvim_get_current_line() == 'xq'", "typed text")
    assert "textDocument/inlineCompletion" not in neovim.lua("return sent")
    assert not any(neovim.ghosts)


def test_plug_mappings_and_switching_off_and_on(serve):
    neovim = serve({"x = ": [{"text": "one"}]}, options="vim.keymap.set('i', '<C-y>', '<Plug>(draftline-accept)')")
    neovim.command("Draftline disable")
    neovim.type("ix = ")
    neovim.wait_for_lua("vim.api.nvim_get_current_line() == 'x = '", "the typed text")
    assert neovim.lua("return require('draftline').status()") == "draftline off"
    neovim.type("<C-o>:Draftline enable<CR><M-\\>")
    neovim.wait_for_ghost(lambda ghost: ghost == "one")
    neovim.type("<C-y>")
    neovim.wait_for_lua("vim.api.nvim_get_current_line() == 'x = one'", "the accepted text")


def test_switching_off_refuses_nothing_and_drops_the_running_request(serve):
    neovim = serve({"x = ": [{"text": "one"}], "x = two": [{"text": " or"}]}, held=["x = two"])
    neovim.type("ix = ")
    neovim.wait_for_ghost(lambda ghost: ghost == "one")
    neovim.command("Draftline disable")
    neovim.wait_for_no_ghost()
    assert "draftline/didRejectCompletion" not in neovim.lua("return sent")
    neovim.command("Draftline enable")
    neovim.type("two")
    neovim.wait_for_lua("waiting['x = two']", "the request")
    neovim.command("Draftline disable")
    neovim.lua("waiting['x = two']()")
    assert not neovim.lua("return require('draftline.session').is_visible()")


# Neovim 0.11 has no inline completion of its own. vim.lsp loads its parts when they are used.
WITHOUT_INLINE_COMPLETION = """
local parts = getmetatable(vim.lsp)
local load = parts.__index
parts.__index = function(lsp, name)
  if name ~= "inline_completion" then return load(lsp, name) end
end
vim.lsp.enable("draftline")
"""


def test_neovim_0_11_without_setup_draws_suggestions_as_ghost_text(serve):
    neovim = serve({"ab": [{"text": "cde"}]}, start=WITHOUT_INLINE_COMPLETION)
    assert not neovim.lua("return require('draftline.server').uses_builtin()")
    neovim.type("iab")
    neovim.wait_for_ghost(lambda ghost: ghost == "cde")


BUILT_IN = 'vim.lsp.enable("draftline") vim.keymap.set("i", "(", "()<Left>")'


@pytest.mark.parametrize(
    ("line", "item_range", "text", "typed", "accepted"),
    [
        ("foo(|)", "line", "bar)", "b", "foo(bar)"),
        ("foo(|) + 1", "line", "bar) + 1", "bar", "foo(bar) + 1"),
        ("foo(|)", "line", "bar(x))", "bar(", "foo(bar(x))"),
        ("if x:|", "line", "\n    pass", "<CR>    ", "if x:\n    pass"),
        ("x = |;", "cursor", "bar", "b", "x = bar;"),
    ],
)
def test_neovims_own_inline_completion_accepts_right_after_a_key(serve, line, item_range, text, typed, accepted):
    before, after = line.split("|")
    answers = {before: [{"text": text, "replaced": after if item_range == "line" else ""}]}
    asks = f'vim.lsp.config("draftline", {{ init_options = {{ itemRange = "{item_range}" }} }})'
    neovim = serve(answers, text=before + after, start=BUILT_IN, options=asks)
    neovim.type("I" + "<Right>" * len(before))
    neovim.wait_for_ghost()
    neovim.type(f"{typed}<Tab>")
    neovim.wait_for_lua("#accepted > 0", "the accepted command")
    assert "\n".join(neovim.lines()) == accepted


def test_a_colour_scheme_keeps_the_old_text_of_next_edits_struck_through(serve):
    neovim = serve({})
    neovim.command("colorscheme habamax")
    assert neovim.lua("return vim.api.nvim_get_hl(0, { name = 'DraftlineEditOld' }).link") == "@markup.strikethrough"
    assert neovim.lua("return vim.api.nvim_get_hl(0, { name = '@markup.strikethrough' }).strikethrough")


def test_a_next_edit_whose_line_gets_shorter_is_not_drawn_again(serve):
    neovim = serve({}, text="a = old\n")
    neovim.lua("""
      local place = { uri = vim.uri_from_bufnr(0), version = vim.lsp.util.buf_versions[vim.api.nvim_get_current_buf()] }
      local range = { start = { line = 0, character = 0 }, ["end"] = { line = 0, character = 7 } }
      edits = { { id = "1", textDocument = place, range = range, oldText = "a = old", text = "a = new", command = {} } }
    """)
    neovim.command("Draftline next_edit")
    neovim.wait_for(lambda: neovim.screen.lines()[0] == "a = oldnew", "the edit")
    neovim.type("$d^")  # Neovim tells of the cursor's move before it tells of the change
    neovim.wait_for_lua("vim.fn.getline(1) == 'd'", "the shorter line")
    assert neovim.lua("return vim.v.errmsg") == ""
