"""Several suggestions: automatic requests get alternatives later, manual requests get them with the answer."""

import pytest

from completion.errors import EngineUnavailableError
from tests.lsp_server.scripted_editor import ScriptedEditor, settle, texts


@pytest.mark.parametrize(("configured", "invoked"), [(1, 1), (3, 5)])
async def test_a_manual_request_asks_for_more_suggestions_than_the_setting(configured, invoked):
    editor = ScriptedEditor("x = ", suggestions=configured)
    await editor.ask_and_hear("1", invoked=True)
    assert [request.suggestions for request in editor.engine.requests] == [invoked]


async def test_a_manual_request_at_an_automatic_suggestion_adds_the_alternatives_without_a_pause():
    editor = ScriptedEditor("x = ", suggestions=3)
    assert texts(await editor.ask_and_be_offered("value")) == ["value"]
    cycling = editor.ask(invoked=True)
    await editor.engine.wait_for_request(2)
    assert not cycling.done()
    await editor.engine.offer("value", "other", "third", done=True)
    assert texts(await cycling) == ["value", "other", "third"]
    assert [request.suggestions for request in editor.engine.requests] == [1, 3]


async def test_an_automatic_request_is_answered_with_the_first_suggestion_and_the_alternatives_follow_after_a_pause():
    editor = ScriptedEditor("x = ", suggestions=3)
    request = editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("va")
    assert not request.done()
    await editor.engine.offer("value", done=True)
    assert texts(await request) == ["value"]
    await editor.engine.wait_for_request(2)
    await editor.engine.say("va")
    assert [one.text for one in editor.partials[-1][1].remainders] == ["value"]
    await editor.engine.offer("value", "other")
    assert [one.text for one in editor.partials[-1][1].remainders] == ["value", "other"]
    await editor.engine.offer("value", "other", "third", done=True)
    assert [one.text for one in editor.partials[-1][1].remainders] == ["value", "other", "third"]
    assert texts(await editor.ask()) == ["value", "other", "third"]
    assert [request.suggestions for request in editor.engine.requests] == [1, 3]


async def test_no_alternatives_are_requested_while_the_user_types_the_suggestion():
    editor = ScriptedEditor("x = ", suggestions=3)
    await editor.ask_and_be_offered("value")
    assert not editor.completer.working
    for remainder in ("alue", "lue", "ue"):
        editor.type("value"[-len(remainder) - 1])
        assert texts(await editor.ask()) == [remainder]
    assert len(editor.engine.requests) == 1
    await editor.engine.wait_for_request(2)
    await editor.engine.offer("value", "valuable", "other", done=True)
    assert [one.text for one in editor.partials[-1][1].remainders] == ["ue", "uable"]


@pytest.mark.parametrize("outcome", ["another text first", "failure"])
async def test_the_shown_suggestion_stays_if_the_alternatives_fail_or_begin_with_another(outcome):
    editor = ScriptedEditor("x = ", suggestions=3)
    await editor.ask_and_be_offered("value")
    await editor.engine.wait_for_request(2)
    if outcome == "failure":
        await editor.engine.fail(EngineUnavailableError("gone"))
    else:
        await editor.engine.offer("values", "other", done=True)
    assert texts(await editor.ask()) == ["value"]
    assert len(editor.engine.requests) == 2


async def test_a_manual_request_is_answered_with_all_suggestions():
    editor = ScriptedEditor("x = ", suggestions=3)
    request = editor.ask(invoked=True)
    await editor.engine.wait_for_request(1)
    await editor.engine.offer("value")
    assert not request.done()
    await editor.engine.offer("value", "other", done=True)
    assert texts(await request) == ["value", "other"]


async def test_typing_what_no_suggestion_begins_with_cancels_the_generation_at_once():
    editor = ScriptedEditor("x = ", suggestions=3)
    await editor.ask_and_be_offered("value")
    editor.type("1")
    await settle()
    assert editor.engine.closed == [0]


@pytest.mark.parametrize("typed", ["value", "values"])
async def test_typing_the_whole_suggestion_leads_to_a_new_one_although_its_alternatives_are_missing(typed):
    editor = ScriptedEditor("x = ", suggestions=3)
    await editor.ask_and_be_offered("value")
    for character in typed:
        editor.type(character)
    again = editor.ask()
    await editor.engine.wait_for_request(2)
    await editor.engine.offer(" + 1", done=True)
    assert texts(await again) == [" + 1"]


async def test_a_manual_request_after_typing_ruled_out_alternatives_gets_new_ones_and_a_repeated_one_the_same():
    editor = ScriptedEditor("x = ", suggestions=3)
    request = editor.ask(invoked=True)
    await editor.engine.wait_for_request(1)
    await editor.engine.offer("value", "other", "third", done=True)
    await request
    editor.type("v")
    assert texts(await editor.ask()) == ["alue"]
    request = editor.ask(invoked=True)
    await editor.engine.wait_for_request(2)
    await editor.engine.offer("alue", "ector", done=True)
    assert texts(await request) == ["alue", "ector"]
    assert texts(await editor.ask(invoked=True)) == ["alue", "ector"]  # the engine has no more suggestions here
    assert len(editor.engine.requests) == 2


async def test_a_manual_request_after_typing_a_part_of_the_suggestion_is_sent_with_the_typed_text():
    editor = ScriptedEditor("x = ", suggestions=3)
    await editor.ask_and_be_offered("value")
    editor.type("v")
    request = editor.ask(invoked=True)
    await editor.engine.wait_for_request(2)
    assert editor.engine.requests[1].prefix == "x = v"
    await editor.engine.offer("alue", "ector", done=True)
    assert texts(await request) == ["alue", "ector"]


async def test_a_manual_request_during_an_automatic_generation_keeps_the_generation():
    editor = ScriptedEditor("x = ", suggestions=3)
    editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("va")
    editor.type("v")
    request = editor.ask(invoked=True)
    await settle()
    assert len(editor.engine.requests) == 1
    await editor.engine.offer("value", done=True)
    await editor.engine.wait_for_request(2)
    await editor.engine.offer("value", "vector", done=True)
    assert texts(await request) == ["alue", "ector"]
