"""The suggestion after the one on the screen is generated in advance, and never shown at any other text."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion.request import SUPERSEDED, CompletionEvent
from lsp_server.documents.text_lines import Place
from lsp_server.empty_reason import EmptyReason
from lsp_server.gate.acceptance_model import Strictness
from lsp_server.settings.client_profile import ClientProfile
from lsp_server.suggesting.ahead import LOOK_S
from lsp_server.suggesting.narrowing import Remainder, Situation, typed_since
from lsp_server.suggesting.query import SITUATION_CHARACTERS
from tests.lsp_server.scripted_editor import URI, ScriptedEditor, settle, texts


def editor_with(text="x = ", cursor=None, **settings):
    return ScriptedEditor(text, cursor, **{"ahead": True, "suggestions": 1, **settings})


async def generate_ahead(editor, pass_time, *said):
    """Let the pause end and the engine say the texts in advance, the last as final."""
    await pass_time(LOOK_S)
    await editor.engine.wait_for_request(2)
    for text in said[:-1]:
        await editor.engine.say(text)
    await editor.engine.say(said[-1], done=True)


def accept(editor, answer):
    """Insert the first suggestion and report it, in this order."""
    editor.type(texts(answer)[0])
    editor.completer.accepted(URI, answer.id)


async def test_the_next_suggestion_is_there_after_the_acceptance(pass_time):
    editor = editor_with("x = \ny", 4)
    shown = await editor.ask_and_hear("value")
    await generate_ahead(editor, pass_time, " + 1")
    request = editor.engine.requests[1]
    assert (request.prefix, request.suffix, request.ahead, request.next_line) == ("x = value", "\ny", True, True)
    accept(editor, shown)
    following = await editor.ask()
    assert texts(following) == [" + 1"]
    assert following.id != shown.id
    assert len(editor.engine.requests) == 2


async def test_tab_after_tab_each_suggestion_prepares_the_next(pass_time):
    editor = editor_with()
    answer = await editor.ask_and_hear("a")
    for number in range(2, 5):
        await pass_time(LOOK_S)
        await editor.engine.wait_for_request(number)
        await editor.engine.say(f"b{number}", done=True)
        accept(editor, answer)
        answer = await editor.ask()
        assert texts(answer) == [f"b{number}"]
    assert [request.prefix for request in editor.engine.requests] == ["x = ", "x = a", "x = ab2", "x = ab2b3"]
    await editor.close()


@pytest.mark.parametrize("is_edited_first", [True, False])
async def test_the_report_of_the_acceptance_may_come_before_or_after_its_edit_and_the_request(
    pass_time, is_edited_first
):
    editor = editor_with()
    shown = await editor.ask_and_hear("value")
    await generate_ahead(editor, pass_time, " + 1")
    if is_edited_first:
        editor.type("value")
        following = editor.ask()
        await settle()
        editor.completer.accepted(URI, shown.id)
    else:
        editor.completer.accepted(URI, shown.id)
        editor.type("value")
        following = editor.ask()
    assert texts(await following) == [" + 1"]


async def test_an_acceptance_while_it_runs_streams_the_rest(pass_time):
    editor = editor_with()
    shown = await editor.ask_and_hear("value")
    await pass_time(LOOK_S)
    await editor.engine.wait_for_request(2)
    await editor.engine.say(" +")
    accept(editor, shown)
    await editor.engine.say(" + 1")  # before the editor has requested anything there
    following = editor.ask()
    await editor.engine.say(" + 1 + 2", done=True)
    assert texts(await following) == [" + 1 + 2"]
    assert len(editor.engine.requests) == 2


async def test_an_acceptance_before_the_pause_starts_it_at_once_and_urgently():
    editor = editor_with()
    shown = await editor.ask_and_hear("value")
    accept(editor, shown)
    following = editor.ask()
    await editor.engine.wait_for_request(2)
    assert (editor.engine.requests[1].prefix, editor.engine.requests[1].ahead) == ("x = value", False)
    await editor.engine.say(" + 1", done=True)
    assert texts(await following) == [" + 1"]


async def test_a_key_that_departs_cancels_it(pass_time):
    editor = editor_with()
    await editor.ask_and_hear("value")
    await pass_time(LOOK_S)
    await editor.engine.wait_for_request(2)
    editor.type("w")
    await settle()
    assert editor.engine.closed == [0, 1]


async def test_a_key_before_the_pause_leaves_no_request(pass_time):
    editor = editor_with()
    await editor.ask_and_hear("value")
    await pass_time(0.9 * LOOK_S)
    editor.type("w")
    await pass_time(2 * LOOK_S)
    assert len(editor.engine.requests) == 1


async def test_typing_along_keeps_it_and_postpones_its_start(pass_time):
    editor = editor_with()
    await editor.ask_and_hear("value")
    for character in "val":
        await pass_time(0.6 * LOOK_S)
        editor.type(character)
        answer = await editor.ask()
        assert len(editor.engine.requests) == 1
    await generate_ahead(editor, pass_time, " + 1")
    editor.type("u")
    answer = await editor.ask()
    accept(editor, answer)
    assert texts(await editor.ask()) == [" + 1"]
    assert editor.document.lines.text() == "x = value"
    assert len(editor.engine.requests) == 2


async def test_alternatives_come_first_and_it_gets_its_own_once_it_is_on_the_screen(pass_time):
    editor = editor_with(suggestions=2)
    shown = await editor.ask_and_be_offered("value")
    await pass_time(LOOK_S)
    await editor.engine.wait_for_request(2)
    assert not editor.engine.requests[1].ahead
    await editor.engine.offer("value", "other", done=True)
    await editor.engine.wait_for_request(3)
    assert (editor.engine.requests[2].suggestions, editor.engine.requests[2].ahead) == (1, True)
    await editor.engine.offer(" + 1", done=True)
    await pass_time(2 * LOOK_S)
    assert len(editor.engine.requests) == 3
    accept(editor, shown)
    assert texts(await editor.ask()) == [" + 1"]
    await pass_time(LOOK_S)
    assert (editor.engine.requests[3].suggestions, editor.engine.requests[3].ahead) == (2, False)
    await editor.close()


async def test_an_accepted_alternative_does_not_get_what_follows_the_first(pass_time):
    editor = editor_with(suggestions=2)
    shown = await editor.ask_and_be_offered("value")
    await pass_time(LOOK_S)
    await editor.engine.wait_for_request(2)
    await editor.engine.offer("value", "other", done=True)
    await editor.engine.wait_for_request(3)
    await editor.engine.offer(" + 1", done=True)
    editor.type("other")
    editor.completer.accepted(URI, shown.id)
    assert texts(await editor.ask_and_hear(" + 2")) == [" + 2"]


async def test_an_acceptance_together_with_an_edit_far_away_does_not_get_it(pass_time):
    far = "a = 1\n" + "#" * SITUATION_CHARACTERS + "\n"
    editor = editor_with(far + "x = ", quiet_ms=0)
    await editor.ask_and_hear("value")
    await generate_ahead(editor, pass_time, " + 1")
    lines, end = editor.document.lines, editor.document.lines.end
    editor.cursor += len("value")
    both = [lines.replace(Place(0, 0), Place(0, 1), "b"), lines.replace(end, end, "value")]
    editor.edited(both)
    assert texts(await editor.ask_and_hear(" + b")) == [" + b"]
    assert editor.engine.requests[2].prefix.endswith("x = value")


async def test_what_the_accepted_suggestion_replaces_is_gone_in_its_text(pass_time):
    editor = editor_with("f()", 2)
    await editor.ask_and_hear("a)", replace_after=1)
    await generate_ahead(editor, pass_time, " + 1")
    assert (editor.engine.requests[1].prefix, editor.engine.requests[1].suffix) == ("f(a)", "")
    editor.edit(2, 3, "a)")
    editor.cursor = 4
    assert texts(await editor.ask()) == [" + 1"]


async def test_a_client_that_only_inserts_gets_new_text_once_it_has_all_but_the_closers_of_a_suggestion(pass_time):
    editor = editor_with("f()", 2)
    editor.profile = ClientProfile()
    assert texts(await editor.ask_and_hear("a)", replace_after=1)) == ["a"]
    await generate_ahead(editor, pass_time, ", b")
    assert (editor.engine.requests[1].prefix, editor.engine.requests[1].suffix) == ("f(a", ")")
    editor.type("a")
    assert texts(await editor.ask()) == [", b"]


@pytest.mark.parametrize("settings", [{"ahead": False}, {"trigger": "manual"}], ids=["off", "on request only"])
async def test_nothing_is_generated_in_advance_where_it_is_off(pass_time, settings):
    editor = editor_with(**settings)
    task = editor.ask(invoked=True)
    await editor.engine.wait_for_request(1)
    await editor.engine.say("value", done=True)
    await pass_time(2 * LOOK_S)
    accept(editor, await task)
    assert len(editor.engine.requests) == 1


@pytest.mark.parametrize("is_reported_first", [True, False])
async def test_the_next_request_after_an_acceptance_is_answered_where_it_is_off(is_reported_first):
    editor = editor_with(ahead=False)
    shown = await editor.ask_and_hear("value")
    editor.type("value")
    if is_reported_first:
        editor.completer.accepted(URI, shown.id)
    following = editor.ask()
    await editor.engine.wait_for_request(2)
    if not is_reported_first:
        editor.completer.accepted(URI, shown.id)
    await editor.engine.say(" + 1", done=True)
    assert texts(await following) == [" + 1"]


async def test_the_acceptance_of_an_alternative_may_be_reported_after_the_next_request():
    editor = editor_with(suggestions=2)
    shown = await editor.ask_and_be_offered("value", "other", invoked=True)
    editor.type("other")
    following = editor.ask()
    await editor.engine.wait_for_request(2)
    editor.completer.accepted(URI, shown.id)
    await editor.engine.say(" + 2", done=True)
    assert texts(await following) == [" + 2"]
    await editor.close()


@pytest.mark.parametrize("is_asked_first", [True, False])
async def test_after_the_acceptance_of_text_that_still_grows_the_next_request_is_answered(is_asked_first):
    editor = editor_with(quiet_ms=0)
    first = editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("value")
    id_ = editor.partials[-1][1].id
    editor.type("value")
    if is_asked_first:
        following = editor.ask()
        await settle()
        editor.completer.accepted(URI, id_)
    else:
        editor.completer.accepted(URI, id_)
        following = editor.ask()
        await editor.engine.wait_for_request(2)
    assert not (await first).remainders
    await editor.engine.say("value + 1" if is_asked_first else " + 1", done=True)
    assert texts(await following) == [" + 1"]
    await editor.close()


async def test_nothing_is_generated_in_advance_while_snoozed(pass_time):
    editor = editor_with()
    await editor.ask_and_hear("value")
    editor.quiet.snooze(5)
    await pass_time(2 * LOOK_S)
    editor.type("value")
    assert (await editor.ask()).reason is EmptyReason.SNOOZED
    assert len(editor.engine.requests) == 1
    editor.quiet.close()


async def test_nothing_is_generated_in_advance_where_the_cursor_would_be_before_a_word(pass_time):
    editor = editor_with("x = tail", 4)
    await editor.ask_and_hear("value + ", invoked=True)
    await pass_time(2 * LOOK_S)
    assert len(editor.engine.requests) == 1


async def test_nothing_is_generated_in_advance_for_a_hidden_suggestion(pass_time):
    editor = editor_with(gate=Strictness.HIGH)
    answer = await editor.ask_and_hear(") ]", each_token=(-4.0,))
    assert answer.reason is EmptyReason.HIDDEN
    await pass_time(2 * LOOK_S)
    assert len(editor.engine.requests) == 1


async def test_another_users_request_that_ends_it_leaves_the_usual_way(pass_time):
    editor = editor_with(quiet_ms=0)
    shown = await editor.ask_and_hear("value")
    await pass_time(LOOK_S)
    await editor.engine.wait_for_request(2)
    editor.engine.queues[1].put_nowait(CompletionEvent((), done=True, dropped=SUPERSEDED))
    await settle()
    accept(editor, shown)
    assert texts(await editor.ask_and_hear(" + 2")) == [" + 2"]


@pytest.mark.parametrize("said", [None, " +"], ids=["no text yet", "text on the screen"])
async def test_a_query_that_waits_for_it_gets_an_ordinary_request_if_another_request_ends_it(pass_time, said):
    editor = editor_with(quiet_ms=0)
    shown = await editor.ask_and_hear("value")
    await pass_time(LOOK_S)
    await editor.engine.wait_for_request(2)
    accept(editor, shown)
    following = editor.ask()
    await settle()
    if said:
        await editor.engine.say(said)
    await editor.engine.say(None, done=True, dropped=SUPERSEDED)
    await editor.engine.wait_for_request(3)
    assert (editor.engine.requests[2].prefix, editor.engine.requests[2].ahead) == ("x = value", False)
    await editor.engine.say(" + 1", done=True)
    assert texts(await following) == [" + 1"]


@pytest.mark.parametrize("act", ["dismiss", "close", "move"])
async def test_a_dismissal_a_closed_document_and_a_moved_cursor_cancel_it(pass_time, act):
    editor = editor_with("a\nx = ")
    shown = await editor.ask_and_hear("value")
    await pass_time(LOOK_S)
    await editor.engine.wait_for_request(2)
    if act == "dismiss":
        editor.completer.discard(URI, shown.id)
    elif act == "close":
        editor.completer.clear(URI)
    else:
        editor.completer.cursor_moved(editor.document, Place(0, 0))
    await settle()
    assert editor.engine.closed == [0, 1]


TEXT = st.text("ab()\n ", max_size=6)


ANOTHER = st.none() | TEXT


@given(TEXT, TEXT, TEXT.filter(bool), TEXT, st.text(")", max_size=2), ANOTHER, ANOTHER)
def test_only_the_accepted_text_with_what_was_typed_after_it_and_closers_gets_it(
    before, after, shown, typed, closers, another_before, another_after
):
    start = Situation(before, after).with_accepted(Remainder(0, shown, 0))
    now_before = before + shown + typed if another_before is None else another_before
    now_after = closers + after if another_after is None else another_after
    found = typed_since(start, Situation(now_before, now_after))
    if found is not None:
        assert now_before == before + shown + found
        assert now_after.lstrip(")") == after.lstrip(")")
    if (now_before, now_after) == (before + shown + typed, after):
        assert found == typed


async def test_after_any_other_edit_its_text_is_never_shown(pass_time):
    before, after = "x = ", "\ny = 2\n"
    edits = itertools.product(range(8), range(3), ("value", "valu", "values", "other", "\n", ""))
    for start, length, inserted in edits:
        editor = editor_with(before + after, len(before), quiet_ms=0)
        await editor.ask_and_hear("value")
        await generate_ahead(editor, pass_time, " + 1")
        editor.edit(start, start + length, inserted)
        editor.cursor = start + len(inserted)
        task = editor.ask()
        await settle()
        text = editor.document.lines.text()
        is_accepted = (text[: editor.cursor], text[editor.cursor :]) == (before + "value", after)
        assert (task.done() and texts(task.result()) == [" + 1"]) == is_accepted, (start, length, inserted)
        await editor.close()
