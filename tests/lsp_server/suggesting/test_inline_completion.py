"""The life of a request in the server: debounce, cancellation, reuse of generations, streaming."""

import asyncio

import pytest
from lsprotocol import types

from completion.errors import EngineUnavailableError, RemoteServerError
from completion.request import CompletionEvent
from lsp_server.documents.text_lines import Place
from lsp_server.empty_reason import EmptyReason
from lsp_server.suggesting.inline_completion import WITHDRAWN_GRACE_S
from tests.lsp_server.scripted_editor import ScriptedEditor, settle, texts


async def test_the_engines_text_is_the_answer():
    editor = ScriptedEditor("def f():\n    return ")
    answer = await editor.ask_and_hear("1", "1 + 2")
    assert texts(answer) == ["1 + 2"]
    assert answer.reason is None
    assert editor.engine.requests[0].prefix == "def f():\n    return "


async def test_streamed_text_only_grows():
    editor = ScriptedEditor("x = ")
    await editor.ask_and_hear("1", "1 +", "1 + 2", "1 + 2")
    streamed = [texts(answer)[0] for _, answer, _ in editor.partials]
    assert streamed == ["1", "1 +", "1 + 2", "1 + 2"]
    assert [done for _, _, done in editor.partials] == [False, False, False, True]
    assert len({answer.id for _, answer, _ in editor.partials}) == 1


async def test_nothing_is_streamed_twice():
    editor = ScriptedEditor("x = ")
    await editor.ask_and_hear("1", "1", "1 + 2", "1 + 2")
    assert [(texts(answer)[0], done) for _, answer, done in editor.partials] == [
        ("1", False),
        ("1 + 2", False),
        ("1 + 2", True),
    ]


async def test_a_kept_answer_is_dropped_when_another_document_changes():
    editor = ScriptedEditor("x = ")
    assert texts(await editor.ask_and_hear("old_name()")) == ["old_name()"]
    assert texts(await editor.ask()) == ["old_name()"]
    other = editor.documents.open(types.TextDocumentItem("file:///b.py", "python", 1, "def old_name"))
    editor.completer.document_changed(other, [other.lines.replace(Place(0, 4), Place(0, 7), "new")])
    assert texts(await editor.ask_and_hear("new_name()")) == ["new_name()"]


async def test_only_what_continues_the_selected_item_of_the_editors_list_is_shown():
    editor = ScriptedEditor("x.na")
    start = types.Position(0, 2)
    range_ = types.Range(start, editor.document.position(editor.place()))
    answers = {}
    for word in ("name", "nap"):
        task = editor.ask(selected=types.SelectedCompletionInfo(range_, word))
        if not editor.engine.requests:
            await editor.engine.wait_for_request(1)
            await editor.engine.say("me()", done=True)
        answers[word] = texts(await task)
    assert answers == {"name": ["me()"], "nap": []}


async def test_new_lines_before_the_closer_of_their_bracket_are_shown_with_that_closer_or_on_request():
    start = {"text": "type A struct {}\n", "cursor": len("type A struct {")}
    editor = ScriptedEditor(**start)
    answer = await editor.ask_and_hear("\n\tmu", "\n\tmu sync.Mutex")
    assert answer.reason is EmptyReason.HIDDEN
    assert not editor.partials
    asked = ScriptedEditor(**start).ask_and_hear("\n\tmu sync.Mutex", invoked=True)
    assert texts(await asked) == ["\n\tmu sync.Mutex"]
    whole = await ScriptedEditor(**start).ask_and_hear("\n\tmu sync.Mutex\n}", replace_after=1)
    assert texts(whole) == ["\n\tmu sync.Mutex\n}"]


async def test_a_line_end_that_the_user_types_between_brackets_keeps_the_suggestion():
    editor = ScriptedEditor("if (x) ", language="javascript")
    assert texts(await editor.ask_and_hear("{\n    a();\n    b();\n}")) == ["{\n    a();\n    b();\n}"]
    editor.type("{", closed_by="}")
    assert texts(await editor.ask()) == ["\n    a();\n    b();\n}"]
    editor.type("\n    ", closed_by="\n")
    assert texts(await editor.ask()) == ["a();\n    b();"]
    editor.type("a")
    assert texts(await editor.ask()) == ["();\n    b();"]
    assert len(editor.engine.requests) == 1


async def test_an_end_tag_that_the_editor_adds_keeps_the_suggestion():
    editor = ScriptedEditor("<p", language="html")
    assert texts(await editor.ask_and_hear(">Nothing found.</p>")) == [">Nothing found.</p>"]
    editor.type(">")
    assert texts(await editor.ask()) == ["Nothing found.</p>"]
    editor.edit(editor.cursor, editor.cursor, "</p>")
    assert texts(await editor.ask()) == ["Nothing found."]
    assert len(editor.engine.requests) == 1


async def test_new_lines_that_were_hidden_between_brackets_are_there_after_the_line_end():
    editor = ScriptedEditor("type A struct {}\n", cursor=len("type A struct {"), language="go")
    assert (await editor.ask_and_hear("\n\tmu sync.Mutex")).reason is EmptyReason.HIDDEN
    editor.type("\n\t", closed_by="\n")
    assert texts(await editor.ask()) == ["mu sync.Mutex"]
    assert len(editor.engine.requests) == 1


async def test_an_automatic_request_is_debounced_and_a_manual_one_is_not():
    editor = ScriptedEditor("x = ", debounce_ms=60_000)
    editor.ask()
    await settle()
    assert not editor.engine.requests
    invoked = editor.ask(invoked=True)
    await settle()
    assert len(editor.engine.requests) == 1
    await editor.engine.say("1", done=True)
    assert texts(await invoked) == ["1"]


async def test_a_newer_request_ends_the_older_one_at_once():
    editor = ScriptedEditor("x = ", debounce_ms=60_000)
    older = editor.ask()
    await settle()
    editor.type("y")
    newer = editor.ask()
    assert (await older).reason is EmptyReason.SUPERSEDED
    assert not newer.done()
    await editor.close()


async def ask_unconsulted(editor, invoked):
    """Request a completion while it is not known whether the file may be read; return the task that waits."""
    editor.consulted.clear()
    asked = editor.ask(invoked=invoked)
    await settle()
    assert not editor.engine.requests
    return asked


@pytest.mark.parametrize("invoked", [False, True])
async def test_a_request_waits_until_it_is_known_whether_its_file_may_be_read(invoked):
    editor = ScriptedEditor("x = ")
    asked = await ask_unconsulted(editor, invoked)
    editor.refusal = EmptyReason.IGNORED_FILE
    editor.consulted.set()
    assert (await asked).reason is EmptyReason.IGNORED_FILE
    assert not editor.engine.requests


@pytest.mark.parametrize("invoked", [False, True])
async def test_a_request_of_a_text_that_changed_while_it_waited_is_outdated_and_the_next_one_is_answered(invoked):
    editor = ScriptedEditor("x = ")
    older = await ask_unconsulted(editor, invoked)
    editor.type("y")
    editor.consulted.set()
    assert (await older).reason is EmptyReason.OUTDATED
    older, newer = await ask_unconsulted(editor, invoked), editor.ask(invoked=invoked)
    await settle()
    editor.consulted.set()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("1", done=True)
    assert (await older).reason is EmptyReason.SUPERSEDED
    assert texts(await newer) == ["1"]


async def test_typing_the_generated_text_keeps_the_generation():
    editor = ScriptedEditor("x = ")
    first = editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("value")
    editor.type("va")
    second = editor.ask()
    assert (await first).reason is EmptyReason.SUPERSEDED
    await editor.engine.say("value + 1", done=True)
    assert texts(await second) == ["lue + 1"]
    assert len(editor.engine.requests) == 1


async def test_typing_ahead_of_the_generated_text_keeps_the_generation_while_it_may_still_fit():
    editor = ScriptedEditor("x = ")
    editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("va")
    editor.type("value")
    second = editor.ask()
    await editor.engine.say("value + 1", done=True)
    assert texts(await second) == [" + 1"]
    assert len(editor.engine.requests) == 1


async def test_a_generation_that_does_not_fit_what_was_typed_ahead_of_it_is_replaced():
    editor = ScriptedEditor("x = ")
    editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("va")
    editor.type("value")
    second = editor.ask()
    await editor.engine.say("variable")
    await editor.engine.wait_for_request(2)
    assert editor.engine.closed == [0]
    await editor.engine.say("s", done=True)
    assert texts(await second) == ["s"]
    assert editor.engine.requests[1].prefix == "x = value"


@pytest.mark.parametrize(
    ("greedy", "typed", "is_replaced"), [("foo(", "b", True), ("\n  foo(", "fo", False), ("", "b", False)]
)
async def test_typing_replaces_a_generation_without_text_if_greedy_decoding_disagrees(greedy, typed, is_replaced):
    editor = ScriptedEditor("x = ", debounce_ms=0)
    editor.ask()
    await editor.engine.wait_for_request(1)
    editor.engine.queues[0].put_nowait(CompletionEvent((), greedy=greedy))
    await settle()
    editor.type(typed)
    second = editor.ask()
    await settle()
    assert editor.engine.closed == ([0] if is_replaced else [])
    await editor.engine.say(f"{typed}ar"[len(typed) if is_replaced else 0 :], done=True)
    assert texts(await second) == ["ar"]


async def test_text_that_greedy_decoding_begins_against_what_was_typed_meanwhile_is_not_waited_for():
    editor = ScriptedEditor("x = ", debounce_ms=0)
    editor.ask()
    await editor.engine.wait_for_request(1)
    editor.type("b")
    second = editor.ask()
    await settle()
    editor.engine.queues[0].put_nowait(CompletionEvent((), greedy="foo("))
    await editor.engine.wait_for_request(2)
    await editor.engine.say("ar", done=True)
    assert texts(await second) == ["ar"]
    assert editor.engine.requests[1].prefix == "x = b"


async def test_typing_the_shown_suggestion_narrows_it_without_a_new_request():
    editor = ScriptedEditor("x = ", debounce_ms=0)
    shown = await editor.ask_and_hear("value + 1")
    for typed, remainder in [("v", "alue + 1"), ("alue", " + 1"), (" ", "+ 1")]:
        editor.type(typed)
        answer = await editor.ask()
        assert texts(answer) == [remainder]
        assert answer.id == shown.id
    assert len(editor.engine.requests) == 1


async def test_typing_something_else_cancels_the_generation_before_the_next_request():
    editor = ScriptedEditor("x = ")
    editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("value")
    editor.type("q")
    await settle()
    assert editor.engine.closed == [0]
    await editor.close()


async def test_an_edit_elsewhere_cancels_the_generation():
    editor = ScriptedEditor("a = 1\nx = ")
    editor.ask()
    await editor.engine.wait_for_request(1)
    await settle()
    editor.edit(0, 1, "b")
    await settle()
    assert editor.engine.closed == [0]
    await editor.close()


@pytest.mark.parametrize("asks_between", [True, False])
async def test_line_breaks_whose_blanks_the_editor_trims_keep_the_generation_that_may_begin_with_them(asks_between):
    editor = ScriptedEditor("def f():\n    x = 1")
    editor.ask()
    await editor.engine.wait_for_request(1)
    editor.type("\n    ")
    if asks_between:
        editor.ask()
        await settle()
    editor.break_line("    ")
    assert editor.document.lines.text() == "def f():\n    x = 1\n\n    "
    task = editor.ask()
    await editor.engine.say("\n\n    return x", done=True)
    assert texts(await task) == ["return x"]
    assert len(editor.engine.requests) == 1


async def test_a_closer_that_the_editor_added_is_replaced_once_the_suggestion_contains_it():
    editor = ScriptedEditor("print")
    first = editor.ask()
    await editor.engine.wait_for_request(1)
    await settle()
    editor.type("(", closed_by=")")
    second = editor.ask()
    await editor.engine.say("(value")
    query, answer, _ = editor.partials[-1]
    assert (texts(answer), answer.remainders[0].replace_after) == (["value"], 0)
    await editor.engine.say("(value)", done=True)
    (remainder,) = (await second).remainders
    assert (remainder.text, remainder.replace_after) == ("value)", 1)
    assert (await first).reason is EmptyReason.SUPERSEDED
    assert query.situation.suffix == ")"


@pytest.mark.parametrize("again", [True, False], ids=["a request after each key", "a request at the end"])
async def test_a_line_end_between_braces_leaves_the_text_between_them_without_a_new_request(again):
    editor = ScriptedEditor("", language="go")
    await editor.ask_and_hear("f() {\n\ta()\n}")
    editor.type("f() {", closed_by="}")
    if again:
        await editor.ask()
    editor.type("\n\t", closed_by="\n")
    answer = await editor.ask()
    assert [(one.text, one.replace_after) for one in answer.remainders] == [("a()", 0)]
    assert len(editor.engine.requests) == 1


async def test_a_closer_that_was_typed_over_is_not_replaced_again():
    editor = ScriptedEditor("f(x)\n", cursor=3)
    await editor.ask_and_hear(")\ny = 1", replace_after=1)
    editor.edit(3, 4, ")")  # the editor types over the existing closer
    editor.cursor = 4
    (remainder,) = (await editor.ask()).remainders
    assert (remainder.text, remainder.replace_after) == ("\ny = 1", 0)
    assert len(editor.engine.requests) == 1


async def test_the_next_request_continues_the_generation_of_a_cancelled_one_and_it_outlives_its_grace(pass_time):
    editor = ScriptedEditor("x = ")
    first = editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("val")
    first.cancel()
    await settle()
    editor.type("v")
    second = editor.ask()
    await pass_time(WITHDRAWN_GRACE_S)
    await editor.engine.say("value", done=True)
    assert texts(await second) == ["alue"]
    assert editor.answers[0].reason is EmptyReason.CANCELLED


async def test_the_generation_of_a_cancelled_request_ends_if_no_other_request_follows():
    editor = ScriptedEditor("x = ")
    first = editor.ask()
    await editor.engine.wait_for_request(1)
    await settle()
    first.cancel()
    await asyncio.wait_for(editor.engine.released.wait(), WITHDRAWN_GRACE_S + 5)
    assert editor.engine.closed == [0]


async def test_a_generation_is_cancelled_when_the_cursor_moves_away_and_kept_when_it_stays():
    editor = ScriptedEditor("a = 1\nx = ")
    editor.ask()
    await editor.engine.wait_for_request(1)
    await settle()
    assert editor.completer.cursor_moved(editor.document, editor.place())
    assert editor.engine.closed == []
    assert not editor.completer.cursor_moved(editor.document, Place(0, 0))
    await settle()
    assert editor.engine.closed == [0]
    await editor.close()


async def test_a_failed_generation_is_not_reused():
    editor = ScriptedEditor("x = ")
    first = editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.fail(EngineUnavailableError("gone"))
    assert (await first).detail == "engine_unavailable"
    assert texts(await editor.ask_and_hear("1")) == ["1"]


async def test_the_log_has_a_model_servers_failure_without_its_words_which_may_quote_the_document(caplog):
    editor = ScriptedEditor("x = ")
    request = editor.ask()
    await editor.engine.wait_for_request(1)
    words = "The server at http://gpu:80 refuses the request with HTTP 400: {'input': 'canary = 1'}"
    await editor.engine.fail(RemoteServerError(words))
    assert (await request).detail == "remote_server"
    assert "http://gpu:80 refuses the request with HTTP 400" in caplog.text
    assert "canary" not in caplog.text


@pytest.mark.parametrize("said", [None, "val"])
@pytest.mark.parametrize("streaming", [True, False])
async def test_a_stream_that_ends_early_is_an_error_and_is_not_repeated(said, streaming):
    editor = ScriptedEditor("x = ", streaming=streaming)
    task = editor.ask()
    await editor.engine.wait_for_request(1)
    if said:
        await editor.engine.say(said)
    await editor.engine.fail(None)
    assert (await asyncio.wait_for(task, 60)).reason is EmptyReason.ENGINE_ERROR
    assert len(editor.engine.requests) == 1
