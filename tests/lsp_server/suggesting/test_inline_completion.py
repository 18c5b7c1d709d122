"""The life of a request in the server: debounce, cancel-previous, reuse, streaming, refusals with a name."""

import asyncio

from completion.errors import EngineUnavailableError
from lsp_server.documents.text_lines import Place
from lsp_server.empty_reason import EmptyReason
from lsp_server.suggesting.inline_completion import WITHDRAWN_GRACE_S
from tests.lsp_server.scripted_editor import ScriptedEditor, settle, texts


async def test_what_the_engine_says_is_the_answer():
    editor = ScriptedEditor("def f():\n    return ")
    answer = await editor.ask_and_hear("1", "1 + 2")
    assert texts(answer) == ["1 + 2"]
    assert answer.reason is None
    assert editor.engine.requests[0].prefix == "def f():\n    return "


async def test_streamed_text_grows_and_is_never_taken_back():
    editor = ScriptedEditor("x = ")
    await editor.ask_and_hear("1", "1 +", "1 + 2", "1 + 2")
    streamed = [texts(answer)[0] for _, answer, _ in editor.partials]
    assert streamed == ["1", "1 +", "1 + 2", "1 + 2"]
    assert [done for _, _, done in editor.partials] == [False, False, False, True]
    assert len({answer.id for _, answer, _ in editor.partials}) == 1


async def test_an_automatic_request_waits_and_an_invoked_one_does_not():
    editor = ScriptedEditor("x = ", debounce_ms=60_000)
    editor.ask()
    await settle()
    assert not editor.engine.requests
    invoked = editor.ask(invoked=True)
    await settle()
    assert len(editor.engine.requests) == 1
    await editor.engine.say("1", done=True)
    assert texts(await invoked) == ["1"]


async def test_a_newer_request_answers_the_older_one_at_once():
    editor = ScriptedEditor("x = ", debounce_ms=60_000)
    older = editor.ask()
    await settle()
    editor.type("y")
    newer = editor.ask()
    assert (await older).reason is EmptyReason.SUPERSEDED
    assert not newer.done()
    await editor.close()


async def test_typing_what_is_being_generated_keeps_the_generation():
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


async def test_typing_ahead_of_the_generation_keeps_it_while_it_may_agree():
    editor = ScriptedEditor("x = ")
    editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("va")
    editor.type("value")
    second = editor.ask()
    await editor.engine.say("value + 1", done=True)
    assert texts(await second) == [" + 1"]
    assert len(editor.engine.requests) == 1


async def test_typing_ahead_of_a_generation_that_then_says_something_else_starts_anew():
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


async def test_typing_what_is_shown_narrows_it_without_a_new_request():
    editor = ScriptedEditor("x = ", debounce_ms=0)
    shown = await editor.ask_and_hear("value + 1")
    for typed, rest in [("v", "alue + 1"), ("alue", " + 1"), (" ", "+ 1")]:
        editor.type(typed)
        answer = await editor.ask()
        assert texts(answer) == [rest]
        assert answer.id == shown.id
    assert len(editor.engine.requests) == 1


async def test_typing_something_else_stops_the_engine_before_the_next_request():
    editor = ScriptedEditor("x = ")
    editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("value")
    editor.type("q")
    await settle()
    assert editor.engine.closed == [0]
    await editor.close()


async def test_an_edit_elsewhere_stops_the_engine():
    editor = ScriptedEditor("a = 1\nx = ")
    editor.ask()
    await editor.engine.wait_for_request(1)
    await settle()
    editor.edit(0, 1, "b")
    await settle()
    assert editor.engine.closed == [0]
    await editor.close()


async def test_a_bracket_that_the_editor_closes_is_covered_once_the_text_closes_it():
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
    (left,) = (await second).remainders
    assert (left.text, left.replace_after) == ("value)", 1)
    assert (await first).reason is EmptyReason.SUPERSEDED
    assert query.situation.suffix == ")"


async def test_a_closer_that_was_typed_over_is_not_replaced_again():
    editor = ScriptedEditor("f(x)\n", cursor=3)
    await editor.ask_and_hear(")\ny = 1", replace_after=1)
    editor.edit(3, 4, ")")  # the editor steps over the closer that stands there
    editor.cursor = 4
    (left,) = (await editor.ask()).remainders
    assert (left.text, left.replace_after) == ("\ny = 1", 0)
    assert len(editor.engine.requests) == 1


async def test_a_withdrawn_request_leaves_its_generation_to_the_next():
    editor = ScriptedEditor("x = ")
    first = editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("val")
    first.cancel()
    await settle()
    editor.type("v")
    second = editor.ask()
    await editor.engine.say("value", done=True)
    assert texts(await second) == ["alue"]
    assert editor.answers[0].reason is EmptyReason.CANCELLED


async def test_a_withdrawn_request_frees_the_engine_when_nobody_asks_again():
    editor = ScriptedEditor("x = ")
    first = editor.ask()
    await editor.engine.wait_for_request(1)
    await settle()
    first.cancel()
    await asyncio.wait_for(editor.engine.released.wait(), WITHDRAWN_GRACE_S + 5)
    assert editor.engine.closed == [0]


async def test_a_cursor_that_rests_elsewhere_stops_the_generation_and_one_that_stays_keeps_it():
    editor = ScriptedEditor("a = 1\nx = ")
    editor.ask()
    await editor.engine.wait_for_request(1)
    await settle()
    assert editor.completer.serves(editor.document, editor.place())
    assert editor.engine.closed == []
    assert not editor.completer.serves(editor.document, Place(0, 0))
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


async def test_a_stream_that_ends_early_is_an_error_and_not_a_loop():
    editor = ScriptedEditor("x = ")
    task = editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.fail(None)
    assert (await task).reason is EmptyReason.ENGINE_ERROR
    assert len(editor.engine.requests) == 1
