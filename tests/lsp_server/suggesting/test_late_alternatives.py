"""Alternatives of an automatic suggestion are generated only after a pause in typing while it is visible."""

import asyncio

import pytest

from lsp_server.documents.text_lines import Place
from lsp_server.gate.acceptance_model import Strictness
from lsp_server.suggesting.generation import PAUSE_S
from tests.lsp_server.scripted_editor import URI, ScriptedEditor, settle, texts


async def test_typing_postpones_alternatives_even_if_the_editor_narrows_the_suggestion_without_a_request(pass_time):
    editor = ScriptedEditor("x = ", suggestions=3)
    await editor.ask_and_be_offered("value")
    for character in "val":
        await pass_time(0.6 * PAUSE_S)
        editor.type(character)
        await settle()
        assert len(editor.engine.requests) == 1
    await pass_time(PAUSE_S)
    assert len(editor.engine.requests) == 2
    await editor.close()


@pytest.mark.parametrize("turns", range(4))
async def test_a_suggestion_that_the_next_key_contradicts_gets_no_alternatives(pass_time, turns):
    """Their request would end the one for the new text, in the host."""
    editor = ScriptedEditor("x = ", suggestions=3)
    await editor.ask_and_be_offered("value")
    await settle()
    editor.type("v")
    for _ in range(turns):  # of the event loop, in which the generation notices the first key
        await asyncio.sleep(0)
    editor.type("x")
    await settle()
    await pass_time(2 * PAUSE_S)
    assert len(editor.engine.requests) == 1
    await editor.close()


async def test_a_hidden_suggestion_gets_alternatives_only_for_a_manual_request(pass_time):
    editor = ScriptedEditor("x = ", suggestions=3, gate=Strictness.HIGH)
    request = editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say(") ]", done=True, each_token=(-4.0,))
    assert texts(await request) == []
    await pass_time(2 * PAUSE_S)
    assert len(editor.engine.requests) == 1
    assert texts(await editor.ask_and_be_offered(") ]", "other", invoked=True)) == [") ]", "other"]
    assert len(editor.engine.requests) == 2


async def test_a_client_without_streaming_gets_alternatives_only_for_a_manual_request(pass_time):
    editor = ScriptedEditor("x = ", suggestions=3, streaming=False)
    await editor.ask_and_be_offered("value")
    await pass_time(2 * PAUSE_S)
    assert texts(await editor.ask()) == ["value"]
    await pass_time(2 * PAUSE_S)
    assert len(editor.engine.requests) == 1
    assert texts(await editor.ask_and_be_offered("value", "other", invoked=True)) == ["value", "other"]
    assert len(editor.engine.requests) == 2


async def test_the_shown_suggestion_is_reported_as_done_while_alternatives_are_generated(pass_time):
    """An editor that inserts it in the meantime inserts all of it."""
    editor = ScriptedEditor("x = ", suggestions=3)
    await editor.ask_and_be_offered("value")
    await pass_time(PAUSE_S)
    await editor.engine.offer("value", "other")
    await editor.engine.offer("value", "other", "third", done=True)
    assert [(texts(answer), done) for _, answer, done in editor.partials] == [
        (["value"], True),
        (["value", "other"], True),
        (["value", "other", "third"], True),
    ]


async def test_a_cursor_that_moves_away_ends_the_request_and_its_generation():
    editor = ScriptedEditor("a = 1\nx = ")
    request = editor.ask()
    await editor.engine.wait_for_request(1)
    await settle()
    assert not editor.completer.cursor_moved(editor.document, Place(0, 0))
    await settle()
    assert request.done()
    assert len(editor.engine.requests) == 1
    await editor.close()


async def test_no_request_is_sent_for_a_document_that_is_closed_in_the_moment_in_which_the_debounce_ends():
    editor = ScriptedEditor("x = ", debounce_ms=0)
    request = editor.ask()
    turn = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(turn.set_result, None)
    await turn  # the request is now in its debounce of 0 ms
    editor.completer.clear(URI)
    await request
    await settle()
    assert editor.engine.requests == []


async def test_the_completer_works_while_a_request_waits_and_not_while_only_alternatives_are_generated(pass_time):
    editor = ScriptedEditor("x = ", suggestions=3)
    request = editor.ask()
    await editor.engine.wait_for_request(1)
    assert editor.completer.working
    await editor.engine.offer("value", done=True)
    await request
    assert not editor.completer.working
    await pass_time(PAUSE_S)
    assert len(editor.engine.requests) == 2
    assert not editor.completer.working
    cycling = editor.ask(invoked=True)
    await settle()
    assert editor.completer.working
    await editor.engine.offer("value", "other", done=True)
    await cycling
    assert not editor.completer.working
