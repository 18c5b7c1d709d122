"""Suggestions behind the first: written for who stopped to look at one that stands there, and for nobody else."""

import asyncio

from lsp_server.documents.text_lines import Place
from lsp_server.gate.acceptance_model import Strictness
from lsp_server.suggesting.generation import REST_S
from tests.lsp_server.scripted_editor import URI, ScriptedEditor, settle, texts


async def test_typing_along_puts_them_off_though_the_editor_narrows_the_text_without_asking(pass_time):
    editor = ScriptedEditor("x = ", suggestions=3)
    await editor.ask_and_be_offered("value")
    for character in "val":
        await pass_time(0.6 * REST_S)
        editor.type(character)
        await settle()
        assert len(editor.engine.requests) == 1
    await pass_time(REST_S)
    assert len(editor.engine.requests) == 2
    await editor.close()


async def test_none_are_written_for_a_text_that_is_held_back_until_they_are_asked_for(pass_time):
    editor = ScriptedEditor("x = ", suggestions=3, gate=Strictness.HIGH)
    asked = editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say(") ]", done=True, each_token=(-4.0,))
    assert texts(await asked) == []
    await pass_time(2 * REST_S)
    assert len(editor.engine.requests) == 1
    assert texts(await editor.ask_and_be_offered(") ]", "other", invoked=True)) == [") ]", "other"]
    assert len(editor.engine.requests) == 2


async def test_a_client_that_would_not_hear_of_them_has_them_written_once_it_asks_by_a_key(pass_time):
    editor = ScriptedEditor("x = ", suggestions=3, streaming=False)
    await editor.ask_and_be_offered("value")
    await pass_time(2 * REST_S)
    assert texts(await editor.ask()) == ["value"]
    await pass_time(2 * REST_S)
    assert len(editor.engine.requests) == 1
    assert texts(await editor.ask_and_be_offered("value", "other", invoked=True)) == ["value", "other"]
    assert len(editor.engine.requests) == 2


async def test_what_stands_there_is_final_while_they_come(pass_time):
    """An editor that inserts it meanwhile has inserted all of it."""
    editor = ScriptedEditor("x = ", suggestions=3)
    await editor.ask_and_be_offered("value")
    await pass_time(REST_S)
    await editor.engine.offer("value", "other")
    await editor.engine.offer("value", "other", "third", done=True)
    assert [(texts(answer), done) for _, answer, done in editor.partials] == [
        (["value"], True),
        (["value", "other"], True),
        (["value", "other", "third"], True),
    ]


async def test_a_cursor_that_rests_elsewhere_ends_the_question_with_its_generation():
    editor = ScriptedEditor("a = 1\nx = ")
    asked = editor.ask()
    await editor.engine.wait_for_request(1)
    await settle()
    assert not editor.completer.serves(editor.document, Place(0, 0))
    await settle()
    assert asked.done()
    assert len(editor.engine.requests) == 1
    await editor.close()


async def test_a_document_that_is_closed_just_as_the_wait_ends_is_not_worked_for():
    editor = ScriptedEditor("x = ", debounce_ms=0)
    asked = editor.ask()
    turn = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(turn.set_result, None)
    await turn  # the question waits now, for no time at all
    editor.completer.clear(URI)
    await asked
    await settle()
    assert editor.engine.requests == []


async def test_the_engine_is_busy_for_who_waits_and_not_for_others_that_nobody_waits_for(pass_time):
    editor = ScriptedEditor("x = ", suggestions=3)
    asked = editor.ask()
    await editor.engine.wait_for_request(1)
    assert editor.completer.working
    await editor.engine.offer("value", done=True)
    await asked
    assert not editor.completer.working
    await pass_time(REST_S)
    assert len(editor.engine.requests) == 2
    assert not editor.completer.working
    cycling = editor.ask(invoked=True)
    await settle()
    assert editor.completer.working
    await editor.engine.offer("value", "other", done=True)
    await cycling
    assert not editor.completer.working
