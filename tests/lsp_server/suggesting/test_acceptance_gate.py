"""The gate hides automatic suggestions that will hardly be accepted, and learns from those that it shows."""

from completion.request import CompletionEvent, Suggestion
from lsp_server.empty_reason import EmptyReason
from lsp_server.gate.acceptance_model import Strictness
from lsp_server.suggesting.acceptance_gate import AcceptanceGate, Passed
from lsp_server.suggesting.generation import Generation
from lsp_server.suggesting.narrowing import Situation
from tests.lsp_server.scripted_editor import URI, ScriptedEditor, texts

TEXT = "def f(value, other):\n    x = "
DOUBTFUL = (-4.0, -5.0, -4.5)
SURE = (-0.01, -0.02, -0.01)


async def test_an_unlikely_suggestion_is_hidden_with_a_reason():
    editor = ScriptedEditor(TEXT, gate=Strictness.HIGH)
    answer = await editor.ask_and_hear(") ]", each_token=DOUBTFUL)
    assert not answer.remainders
    assert answer.reason is EmptyReason.HIDDEN
    assert not editor.partials


async def test_a_likely_suggestion_is_shown():
    editor = ScriptedEditor(TEXT, gate=Strictness.HIGH)
    assert texts(await editor.ask_and_hear("value + other", each_token=SURE)) == ["value + other"]


async def test_the_suggestion_of_a_manual_request_is_shown():
    editor = ScriptedEditor(TEXT, gate=Strictness.HIGH)
    assert texts(await editor.ask_and_hear(") ]", each_token=DOUBTFUL, invoked=True)) == [") ]"]


async def test_a_suggestion_that_is_on_the_screen_is_never_hidden():
    editor = ScriptedEditor(TEXT, gate=Strictness.HIGH)
    task = editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("value +", each_token=SURE)
    await editor.engine.say("value + ) ]", done=True, each_token=DOUBTFUL)
    assert texts(await task) == ["value + ) ]"]


async def test_the_gate_learns_from_the_whole_suggestion_not_from_its_first_part():
    editor = ScriptedEditor(TEXT, gate=Strictness.HIGH)
    task = editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("value", each_token=SURE[:1])
    editor.clock.now += 3.0
    await editor.engine.say("value + other", done=True, each_token=SURE)
    answer = await task
    editor.clock.now += 2.0
    editor.policy.acceptance.accepted(answer.generation.passed)
    model = editor.policy.acceptance._model
    assert [offer.text for offer in model.behaviour.shown] == ["value + other"]
    assert list(model.behaviour.dwell_s) == [5.0]
    assert model.user_bias > 0


async def test_a_shown_suggestion_stays_visible_after_the_gate_learned_from_it_and_counts_once():
    """A suggestion in another document appears while this one is still generated."""
    editor = ScriptedEditor(TEXT, gate=Strictness.HIGH)
    task = editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("value +", each_token=SURE)
    acceptance = editor.policy.acceptance
    passed = editor.partials[-1][1].generation.passed
    acceptance.shown(passed)
    acceptance.shown(Passed(None))  # in another document
    await editor.engine.say("value + ) ]", done=True, each_token=DOUBTFUL)
    assert texts(await task) == ["value + ) ]"]
    acceptance.shown(passed)
    acceptance.rejected(passed)
    assert learned(acceptance) == 1


async def test_a_user_who_accepts_nothing_sees_fewer_suggestions():
    shown = []
    editor = ScriptedEditor(TEXT, gate=Strictness.NORMAL)
    for _ in range(30):
        editor.clock.now += 20.0
        answer = await editor.ask_and_hear("other()", each_token=(-0.4, -0.5, -0.5))
        shown.append(bool(answer.remainders))
        if answer.remainders:
            editor.policy.acceptance.shown(answer.generation.passed)
        editor.completer.clear(URI)
    assert shown[0]
    assert sum(shown[15:]) < sum(shown[:15])


def passed_by(gate):
    """Return what a gate may learn from a suggestion that it let pass."""
    generation = Generation("id", Situation("x = ", ""))
    generation.last = CompletionEvent((Suggestion("value"),), done=True)
    assert not gate.hides(generation, Strictness.OFF)
    return generation.passed


def learned(gate):
    """Return the number of decisions that a gate has learned from."""
    return len(gate._model.behaviour.shown)


def test_a_rejection_counts_if_the_suggestion_was_on_the_screen():
    gate = AcceptanceGate(lambda: 0.0)
    one = passed_by(gate)
    gate.rejected(one)
    assert learned(gate) == 0
    gate.shown(one)
    gate.shown(one)
    assert learned(gate) == 0
    gate.rejected(one)
    gate.rejected(one)
    assert learned(gate) == 1
    assert gate._model.user_bias < 0


def test_a_suggestion_whose_place_another_takes_counts_as_rejected_unless_it_was_accepted():
    gate = AcceptanceGate(lambda: 0.0)
    first, second, third = (passed_by(gate) for _ in range(3))
    gate.shown(first)
    gate.accepted(first)
    biases = [gate._model.user_bias]
    gate.shown(second)
    assert learned(gate) == 1
    for other in (third, Passed(None)):
        gate.shown(other)
        biases.append(gate._model.user_bias)
    assert learned(gate) == 3
    assert biases[0] > 0
    assert biases[0] > biases[1] > biases[2]


def test_nothing_is_learned_from_suggestions_of_a_closed_document():
    gate = AcceptanceGate(lambda: 0.0)
    closed, other = passed_by(gate), passed_by(gate)
    gate.shown(closed)
    gate.forget(closed)
    gate.shown(other)
    assert learned(gate) == 0
    gate.accepted(other)
    assert learned(gate) == 1
    assert gate._model.user_bias > 0
