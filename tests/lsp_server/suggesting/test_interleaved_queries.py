"""Queries and generations between which the text changes, or one of which is cancelled, accepted or manual."""

import pytest

from lsp_server.empty_reason import EmptyReason
from lsp_server.suggesting.ahead import LOOK_S
from lsp_server.suggesting.generation import PAUSE_S
from lsp_server.suggesting.typing_rhythm import MIN_PAUSES
from tests.lsp_server.scripted_editor import URI, ScriptedEditor, settle


async def test_a_query_whose_text_changed_during_the_debounce_is_not_sent(pass_time):
    editor = ScriptedEditor("x = ", debounce_ms=100)
    query = editor.ask()
    await settle()
    editor.type("y")
    await pass_time(0.1)
    assert query.done()
    assert (await query).reason is EmptyReason.OUTDATED
    assert editor.engine.requests == []


@pytest.mark.parametrize(("editor_waits_s", "left_s"), [(0.0, 0.08), (0.05, 0.03), (0.5, 0.08)])
async def test_the_debounce_begins_at_the_key_if_the_editor_waits_before_it_asks(pass_time, editor_waits_s, left_s):
    editor = ScriptedEditor("x = ", debounce_ms=80)
    older = editor.ask()
    await settle()
    editor.type("y")
    editor.clock.now += editor_waits_s
    editor.ask()
    await settle()
    await pass_time(left_s - 0.02)
    assert not editor.engine.requests
    await pass_time(0.02)
    assert len(editor.engine.requests) == 1
    assert (await older).reason is EmptyReason.SUPERSEDED
    await editor.close()


async def test_a_query_whose_text_changed_sends_no_second_request_when_the_generation_does_not_fit():
    editor = ScriptedEditor("x = ")
    editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("va")
    editor.type("value")
    query = editor.ask()
    await settle()
    editor.type("s")
    await editor.engine.say("variable")
    assert query.done()
    assert (await query).reason is EmptyReason.OUTDATED
    assert len(editor.engine.requests) == 1
    await editor.close()


async def test_manual_requests_are_no_keys_from_which_the_debounce_learns():
    editor = ScriptedEditor("x = ", debounce_ms=60_000)
    await editor.ask_and_hear("1", invoked=True)
    for _ in range(2 * MIN_PAUSES):
        editor.clock.now += 1
        await editor.ask(invoked=True)
    editor.type("y")
    editor.ask()
    await settle()
    assert len(editor.engine.requests) == 1
    await editor.close()


async def test_the_acceptance_of_another_suggestion_ends_what_was_generated_in_advance(pass_time):
    editor = ScriptedEditor("x = ", ahead=True, suggestions=1)
    await editor.ask_and_hear("value")
    await pass_time(LOOK_S)
    await editor.engine.wait_for_request(2)
    editor.completer.accepted(URI, "another")
    await settle()
    assert editor.engine.closed == [0, 1]


async def test_no_alternatives_are_generated_for_a_suggestion_that_was_accepted(pass_time):
    editor = ScriptedEditor("x = ", ahead=True, suggestions=3)
    await editor.ask_and_hear("value")
    editor.type("value")
    await editor.engine.wait_for_request(2)
    await pass_time(2 * PAUSE_S)
    assert [request.prefix for request in editor.engine.requests] == ["x = ", "x = value"]
    await editor.close()
