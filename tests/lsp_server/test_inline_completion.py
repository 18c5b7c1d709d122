"""The life of a request in the server: debounce, cancel-previous, reuse, streaming, refusals with a name."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from completion.errors import EngineUnavailableError, PromptTooLongError
from completion.gate import Strictness
from completion.request import CompletionEvent, Suggestion
from lsp_server.empty_reason import EmptyReason
from lsp_server.generation import CLOSERS, Generation, Situation
from lsp_server.inline_completion import WITHDRAWN_GRACE_S
from lsp_server.text_lines import Place
from tests.lsp_server.scripted_editor import URI, ScriptedEditor, settle, texts


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


@pytest.mark.parametrize("signal", ["note_acceptance", "note_rejection"])
async def test_quiet_after_acceptance_and_dismissal_ends_after_a_second_or_when_asked(signal):
    editor = ScriptedEditor("x = ")
    getattr(editor.gate, signal)(URI)
    editor.clock.now += 0.9
    assert (await editor.ask()).reason in {EmptyReason.AFTER_ACCEPTANCE, EmptyReason.AFTER_REJECTION}
    assert texts(await editor.ask_and_hear("1", invoked=True)) == ["1"]
    editor.completer.clear(URI)
    editor.clock.now += 0.2
    assert texts(await editor.ask_and_hear("2")) == ["2"]


async def test_typing_after_a_deletion_ends_the_quiet():
    editor = ScriptedEditor("x = 1")
    editor.delete(1)
    assert (await editor.ask()).reason is EmptyReason.DELETING
    editor.type(" ")
    assert texts(await editor.ask_and_hear("2")) == ["2"]


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("ret|urn x", True),
        ("foo|bar", True),
        ("foo| = 3", True),
        ("foo(|bar)", True),
        ("print(val|)", False),
        ("print(val|));", False),
        ("x = | + y", False),
        ("foo|  ", False),
        ("é|t", True),
        ('a["key|"]:', False),
        ("|", False),
        ("x = |\nnext = 1", False),
    ],
)
async def test_nothing_inside_a_word_unless_only_closers_follow(text, refused):
    cursor = text.index("|")
    editor = ScriptedEditor(text.replace("|", ""), cursor=cursor)
    assert editor.gate.automatic_refusal(editor.document, editor.place()) == (
        EmptyReason.INSIDE_WORD if refused else None
    )


# --- every reason has a way to be met ---------------------------------------------------------------------------------


async def refused(editor, **options):
    return await editor.ask(**options)


async def reach_outdated():
    editor = ScriptedEditor("x = ")
    task = editor.ask()
    await editor.engine.wait_for_request(1)
    await settle()
    editor.edit(0, 1, "y")  # without asking again
    return await task


async def reach_superseded():
    editor = ScriptedEditor("x = ")
    task = editor.ask()
    await settle()
    editor.ask()
    answer = await task
    await editor.close()
    return answer


async def reach_cancelled():
    editor = ScriptedEditor("x = ")
    task = editor.ask()
    await settle()
    task.cancel()
    await settle()
    return editor.answers[-1]


async def reach_not_ready():
    editor = ScriptedEditor("x = ")
    editor.source = None
    return await editor.ask()


async def reach_file(reason):
    editor = ScriptedEditor("x = ")
    editor.refusal = reason
    return await editor.ask(invoked=True)


async def reach_error():
    editor = ScriptedEditor("x = ")
    task = editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.fail(PromptTooLongError("too long"))
    return await task


async def reach_after(signal):
    editor = ScriptedEditor("x = ")
    getattr(editor.gate, signal)(URI)
    return await editor.ask()


async def reach_deleting():
    editor = ScriptedEditor("x = 1")
    editor.delete(1)
    return await editor.ask()


REACHED = {
    EmptyReason.DISABLED: lambda: refused(ScriptedEditor("x", enabled=False), invoked=True),
    EmptyReason.LANGUAGE_OFF: lambda: refused(ScriptedEditor("x", languages_off=("python",)), invoked=True),
    EmptyReason.TOO_LARGE: lambda: refused(ScriptedEditor("x" * 2000, max_file_mb=0.001), invoked=True),
    EmptyReason.BINARY: lambda: refused(ScriptedEditor("\0"), invoked=True),
    EmptyReason.NOT_UTF8: lambda: refused(ScriptedEditor("\udce9"), invoked=True),
    EmptyReason.SECRET_FILE: lambda: reach_file(EmptyReason.SECRET_FILE),
    EmptyReason.IGNORED_FILE: lambda: reach_file(EmptyReason.IGNORED_FILE),
    EmptyReason.INSIDE_WORD: lambda: refused(ScriptedEditor("return", cursor=3)),
    EmptyReason.DELETING: reach_deleting,
    EmptyReason.AFTER_ACCEPTANCE: lambda: reach_after("note_acceptance"),
    EmptyReason.AFTER_REJECTION: lambda: reach_after("note_rejection"),
    EmptyReason.NOT_READY: reach_not_ready,
    EmptyReason.OUTDATED: reach_outdated,
    EmptyReason.SUPERSEDED: reach_superseded,
    EmptyReason.CANCELLED: reach_cancelled,
    EmptyReason.ENGINE_ERROR: reach_error,
    EmptyReason.MODEL_SILENT: lambda: ScriptedEditor("x = ").ask_and_hear(""),
    EmptyReason.FILTERED: lambda: ScriptedEditor("x = ").ask_and_hear(None, dropped="repeats_suffix"),
    EmptyReason.HELD_BACK: lambda: ScriptedEditor("x = ", gate=Strictness.HIGH).ask_and_hear(") ]", each_token=(-4.0,)),
}


@pytest.mark.parametrize("reason", sorted(set(EmptyReason) - {EmptyReason.NOT_OPEN}))
async def test_every_reason_is_met(reason):
    answer = await REACHED[reason]()
    assert answer.reason is reason
    assert not answer.remainders


# --- narrowing --------------------------------------------------------------------------------------------------------


def generation_of(text, suffix="", replace_after=0):
    generation = Generation("id", Situation("P", suffix))
    generation.last = CompletionEvent((Suggestion(text, replace_after),), done=True)
    generation.cancelled = True
    generation.cancel()
    return generation


CODE = st.text(alphabet="ab() []\n\"'", max_size=12)


@settings(deadline=None)
@given(CODE, CODE)
def test_typing_any_beginning_of_the_text_leaves_exactly_its_rest(text, typed):
    left = generation_of(text).remainders(Situation("P" + typed, ""))
    if text.startswith(typed) and len(typed) < len(text):
        assert left[0].text == text[len(typed) :]
    else:
        assert left is None


@settings(deadline=None)
@given(CODE, st.integers(0, 12), st.text(alphabet=sorted(CLOSERS), max_size=3), CODE)
def test_accepting_a_narrowed_text_never_doubles_a_closer_that_the_editor_added(text, cut, closers, suffix):
    typed = text[:cut]
    left = generation_of(text, suffix).remainders(Situation("P" + typed, closers + suffix))
    if not left:
        return
    accepted = "P" + typed + left[0].text + (closers + suffix)[left[0].replace_after :]
    covered = (closers + suffix)[: left[0].replace_after]
    assert closers.startswith(covered)
    assert accepted == "P" + text + closers[len(covered) :] + suffix
