"""What will hardly be accepted is held back unless asked for; what is shown teaches the gate."""

from lsp_server.empty_reason import EmptyReason
from lsp_server.gate.acceptance_model import Strictness
from tests.lsp_server.scripted_editor import URI, ScriptedEditor, texts

TEXT = "def f(value, other):\n    x = "
DOUBTFUL = (-4.0, -5.0, -4.5)
SURE = (-0.01, -0.02, -0.01)


async def test_a_doubtful_suggestion_is_held_back_by_name():
    editor = ScriptedEditor(TEXT, gate=Strictness.HIGH)
    answer = await editor.ask_and_hear(") ]", each_token=DOUBTFUL)
    assert not answer.remainders
    assert answer.reason is EmptyReason.HELD_BACK
    assert not editor.partials


async def test_a_sure_suggestion_is_shown():
    editor = ScriptedEditor(TEXT, gate=Strictness.HIGH)
    assert texts(await editor.ask_and_hear("value + other", each_token=SURE)) == ["value + other"]


async def test_what_was_asked_for_passes():
    editor = ScriptedEditor(TEXT, gate=Strictness.HIGH)
    assert texts(await editor.ask_and_hear(") ]", each_token=DOUBTFUL, invoked=True)) == [") ]"]


async def test_text_on_the_screen_is_not_taken_back():
    editor = ScriptedEditor(TEXT, gate=Strictness.HIGH)
    task = editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("value +", each_token=SURE)
    await editor.engine.say("value + ) ]", done=True, each_token=DOUBTFUL)
    assert texts(await task) == ["value + ) ]"]


async def test_what_is_learned_of_is_the_whole_text_not_its_first_part():
    editor = ScriptedEditor(TEXT, gate=Strictness.HIGH)
    task = editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("value", each_token=SURE[:1])
    editor.clock.now += 3.0
    await editor.engine.say("value + other", done=True, each_token=SURE)
    answer = await task
    editor.clock.now += 2.0
    editor.gate.acceptance.accepted(answer.id)
    behaviour = editor.gate.acceptance._gate.behaviour
    assert behaviour.accepted_lengths == [len("value + other")]
    assert behaviour.dwell_s == [5.0]


async def test_what_was_let_through_stays_so_after_its_fate_is_known_and_is_learned_of_once():
    """A suggestion in another document took the screen while this one was still being written."""
    editor = ScriptedEditor(TEXT, gate=Strictness.HIGH)
    task = editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("value +", each_token=SURE)
    acceptance = editor.gate.acceptance
    id_ = editor.partials[-1][1].id
    acceptance.shown(id_)
    acceptance.shown("in another document")
    await editor.engine.say("value + ) ]", done=True, each_token=DOUBTFUL)
    assert texts(await task) == ["value + ) ]"]
    acceptance.shown(id_)
    acceptance.rejected(id_)
    assert acceptance._gate.behaviour.decisions == 1


async def test_a_user_who_passes_everything_over_is_shown_less():
    shown = []
    editor = ScriptedEditor(TEXT, gate=Strictness.NORMAL)
    for _ in range(30):
        editor.clock.now += 20.0
        answer = await editor.ask_and_hear("other()", each_token=(-0.4, -0.5, -0.5))
        shown.append(bool(answer.remainders))
        if answer.remainders:
            editor.gate.acceptance.shown(answer.id)
        editor.completer.clear(URI)
    assert shown[0]
    assert sum(shown[15:]) < sum(shown[:15])
