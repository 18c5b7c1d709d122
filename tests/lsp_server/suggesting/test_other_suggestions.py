"""Several suggestions in the server: which come by themselves, which follow the answer, which a key asks for."""

import pytest

from completion.errors import EngineUnavailableError
from tests.lsp_server.scripted_editor import ScriptedEditor, settle, texts


@pytest.mark.parametrize(("configured", "invoked"), [(1, 1), (3, 5)])
async def test_an_invoked_request_asks_for_more_suggestions_than_come_by_themselves(configured, invoked):
    editor = ScriptedEditor("x = ", suggestions=configured)
    await editor.ask_and_hear("1", invoked=True)
    assert [request.suggestions for request in editor.engine.requests] == [invoked]


async def test_who_asks_by_a_key_where_a_suggestion_came_by_itself_gets_the_others_at_once():
    editor = ScriptedEditor("x = ", suggestions=3)
    assert texts(await editor.ask_and_be_offered("value")) == ["value"]
    cycling = editor.ask(invoked=True)
    await editor.engine.wait_for_request(2)
    assert not cycling.done()
    await editor.engine.offer("value", "other", "third", done=True)
    assert texts(await cycling) == ["value", "other", "third"]
    assert [request.suggestions for request in editor.engine.requests] == [1, 3]


async def test_what_comes_by_itself_is_answered_with_the_first_text_and_the_others_follow_who_looks_at_it():
    editor = ScriptedEditor("x = ", suggestions=3)
    asked = editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("va")
    assert not asked.done()
    await editor.engine.offer("value", done=True)
    assert texts(await asked) == ["value"]
    await editor.engine.wait_for_request(2)
    await editor.engine.say("va")
    assert [one.text for one in editor.partials[-1][1].remainders] == ["value"]
    await editor.engine.offer("value", "other")
    assert [one.text for one in editor.partials[-1][1].remainders] == ["value", "other"]
    await editor.engine.offer("value", "other", "third", done=True)
    assert [one.text for one in editor.partials[-1][1].remainders] == ["value", "other", "third"]
    assert texts(await editor.ask()) == ["value", "other", "third"]
    assert [request.suggestions for request in editor.engine.requests] == [1, 3]


async def test_the_others_are_not_asked_for_while_somebody_types_along():
    editor = ScriptedEditor("x = ", suggestions=3)
    await editor.ask_and_be_offered("value")
    assert not editor.completer.working
    for left in ("alue", "lue", "ue"):
        editor.type("value"[-len(left) - 1])
        assert texts(await editor.ask()) == [left]
    assert len(editor.engine.requests) == 1
    await editor.engine.wait_for_request(2)
    await editor.engine.offer("value", "valuable", "other", done=True)
    assert [one.text for one in editor.partials[-1][1].remainders] == ["ue", "uable"]


@pytest.mark.parametrize("said", ["another text first", "failure"])
async def test_the_text_that_stands_there_stays_whatever_comes_of_the_others(said):
    editor = ScriptedEditor("x = ", suggestions=3)
    await editor.ask_and_be_offered("value")
    await editor.engine.wait_for_request(2)
    if said == "failure":
        await editor.engine.fail(EngineUnavailableError("gone"))
    else:
        await editor.engine.offer("values", "other", done=True)
    assert texts(await editor.ask()) == ["value"]
    assert len(editor.engine.requests) == 2


async def test_who_asks_by_a_key_gets_all_suggestions_at_once():
    editor = ScriptedEditor("x = ", suggestions=3)
    asked = editor.ask(invoked=True)
    await editor.engine.wait_for_request(1)
    await editor.engine.offer("value")
    assert not asked.done()
    await editor.engine.offer("value", "other", done=True)
    assert texts(await asked) == ["value", "other"]


async def test_a_key_that_no_text_begins_with_ends_the_alternatives_at_once():
    editor = ScriptedEditor("x = ", suggestions=3)
    await editor.ask_and_be_offered("value")
    editor.type("1")
    await settle()
    assert editor.engine.closed == [0]


@pytest.mark.parametrize("typed", ["value", "values"])
async def test_who_typed_the_whole_first_text_gets_another_one_though_alternatives_are_still_to_come(typed):
    editor = ScriptedEditor("x = ", suggestions=3)
    await editor.ask_and_be_offered("value")
    for character in typed:
        editor.type(character)
    again = editor.ask()
    await editor.engine.wait_for_request(2)
    await editor.engine.offer(" + 1", done=True)
    assert texts(await again) == [" + 1"]


async def test_who_typed_past_the_others_and_asks_by_a_key_gets_others_and_the_same_again_at_the_next_key():
    editor = ScriptedEditor("x = ", suggestions=3)
    asked = editor.ask(invoked=True)
    await editor.engine.wait_for_request(1)
    await editor.engine.offer("value", "other", "third", done=True)
    await asked
    editor.type("v")
    assert texts(await editor.ask()) == ["alue"]
    asked = editor.ask(invoked=True)
    await editor.engine.wait_for_request(2)
    await editor.engine.offer("alue", "ector", done=True)
    assert texts(await asked) == ["alue", "ector"]
    assert texts(await editor.ask(invoked=True)) == ["alue", "ector"]  # no more of them are to be had here
    assert len(editor.engine.requests) == 2


async def test_who_typed_along_and_asks_by_a_key_gets_others_that_go_on_from_there():
    editor = ScriptedEditor("x = ", suggestions=3)
    await editor.ask_and_be_offered("value")
    editor.type("v")
    asked = editor.ask(invoked=True)
    await editor.engine.wait_for_request(2)
    assert editor.engine.requests[1].prefix == "x = v"
    await editor.engine.offer("alue", "ector", done=True)
    assert texts(await asked) == ["alue", "ector"]


async def test_who_asks_by_a_key_while_the_text_is_generated_keeps_it():
    editor = ScriptedEditor("x = ", suggestions=3)
    editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("va")
    editor.type("v")
    asked = editor.ask(invoked=True)
    await settle()
    assert len(editor.engine.requests) == 1
    await editor.engine.offer("value", done=True)
    await editor.engine.wait_for_request(2)
    await editor.engine.offer("value", "vector", done=True)
    assert texts(await asked) == ["alue", "ector"]
