"""Every empty reason occurs, and the quiet periods end as they should."""

import pytest

from completion.errors import PromptTooLongError
from lsp_server.empty_reason import EmptyReason
from lsp_server.gate.acceptance_model import Strictness
from lsp_server.messages import OffScope, Switch
from tests.lsp_server.scripted_editor import URI, ScriptedEditor, settle, texts


async def test_the_quiet_period_after_a_dismissal_lasts_a_second_and_spares_manual_requests():
    editor = ScriptedEditor("x = ")
    editor.policy.note_rejection(editor.document)
    editor.clock.now += 0.9
    assert (await editor.ask()).reason is EmptyReason.AFTER_REJECTION
    assert texts(await editor.ask_and_hear("1", invoked=True)) == ["1"]
    editor.completer.clear(URI)
    editor.clock.now += 0.2
    assert texts(await editor.ask_and_hear("2")) == ["2"]


async def test_typing_after_a_deletion_ends_its_quiet_period():
    editor = ScriptedEditor("x = 1")
    editor.delete(1)
    assert (await editor.ask()).reason is EmptyReason.DELETING
    editor.type(" ")
    assert texts(await editor.ask_and_hear("2")) == ["2"]


async def test_what_is_generated_already_does_not_appear_while_the_user_deletes():
    editor = ScriptedEditor("def f():\n    ")
    assert texts(await editor.ask_and_hear("return va")) == ["return va"]
    editor.type("ret")
    assert texts(await editor.ask()) == ["urn va"]
    editor.delete(1)
    assert (await editor.ask()).reason is EmptyReason.DELETING
    editor.type("t")
    assert texts(await editor.ask_and_hear("urn value")) == ["urn value"]


async def test_a_requested_suggestion_stays_while_the_user_deletes():
    editor = ScriptedEditor("def f():\n    re")
    assert texts(await editor.ask_and_hear("turn value", invoked=True)) == ["turn value"]
    editor.type("t")
    editor.delete(1)
    assert texts(await editor.ask()) == ["turn value"]


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("ret|urn x", True),
        ("foo|bar", True),
        ("foo| = 3", False),
        ("foo(|bar)", True),
        ("print(val|)", False),
        ("print(val|));", False),
        ("x = | + y", False),
        ("foo|  ", False),
        ("é|t", True),
        ('a["key|"]:', False),
        ("|", False),
        ("x = |\nnext = 1", False),
        ("<h1>Wel|</h1>", False),
        ("<td>{price(item.am|)}</td>", False),
        ('<ui.Tab key="a|"></ui.Tab></>', False),
        ("<p>Wel|<b>come</b></p>", False),
        ("def f(a, b|) -> int:", False),
        ("f(a, b|, c)", False),
        ("f(a, |b)", True),
        ("if (a && b|) {", False),
        ("<p>Wel|come</p>", True),
    ],
)
async def test_an_automatic_request_inside_or_directly_before_a_word_is_refused(text, refused):
    cursor = text.index("|")
    editor = ScriptedEditor(text.replace("|", ""), cursor=cursor)
    assert editor.policy.automatic_refusal(editor.document, editor.place()) == (
        EmptyReason.INSIDE_WORD if refused else None
    )


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("a:\n|  b: 1", True),
        ("a:\n | b: 1", True),
        ("a:\n|\tb: 1", True),
        ("a:\n  |- b: 1", False),
        ("a:\n|  ", False),
        ("a:\n  |\n  b: 1", False),
        ("a: |  # b", False),
        ("|)", False),
    ],
)
async def test_an_automatic_request_in_the_indentation_of_a_line_is_refused(text, refused):
    cursor = text.index("|")
    editor = ScriptedEditor(text.replace("|", ""), cursor=cursor)
    assert editor.policy.automatic_refusal(editor.document, editor.place()) == (
        EmptyReason.IN_INDENTATION if refused else None
    )


async def refused(editor, **options):
    return await editor.ask(**options)


async def reach_outdated():
    editor = ScriptedEditor("x = ")
    task = editor.ask()
    await editor.engine.wait_for_request(1)
    await settle()
    editor.edit(0, 1, "y")  # without another request
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


async def reach_after_rejection():
    editor = ScriptedEditor("x = ")
    editor.policy.note_rejection(editor.document)
    return await editor.ask()


async def reach_deleting():
    editor = ScriptedEditor("x = 1")
    editor.delete(1)
    return await editor.ask()


async def reach_switched_off(scope):
    editor = ScriptedEditor("x = ", folder="file:///project")
    editor.quiet.switch(Switch(scope, URI, is_off=True), editor.document)
    return await editor.ask(invoked=True)


async def reach_snoozed():
    editor = ScriptedEditor("x = ")
    editor.quiet.snooze(float("inf"))
    return await editor.ask()


async def reach_typing():
    editor = ScriptedEditor("x = ", show_after_ms=10_000)
    task = editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("1", done=True)
    editor.type("y")
    editor.ask()
    answer = await task
    await editor.close()
    return answer


REACHED = {
    EmptyReason.FILE_OFF: lambda: reach_switched_off(OffScope.FILE),
    EmptyReason.WORKSPACE_OFF: lambda: reach_switched_off(OffScope.WORKSPACE),
    EmptyReason.MANUAL: lambda: refused(ScriptedEditor("x = ", trigger="manual")),
    EmptyReason.SNOOZED: reach_snoozed,
    EmptyReason.IN_COMMENT: lambda: ScriptedEditor("# x").ask_and_hear(None, dropped="in_comment"),
    EmptyReason.IN_STRING: lambda: ScriptedEditor("'x").ask_and_hear(None, dropped="in_string"),
    EmptyReason.TYPING: reach_typing,
    EmptyReason.DISABLED: lambda: refused(ScriptedEditor("x", enabled=False), invoked=True),
    EmptyReason.LANGUAGE_OFF: lambda: refused(ScriptedEditor("x", languages_off=("python",)), invoked=True),
    EmptyReason.TOO_LARGE: lambda: refused(ScriptedEditor("x" * 2000, max_file_mb=0.001), invoked=True),
    EmptyReason.LINE_TOO_LONG: lambda: refused(ScriptedEditor("x" * 10_001), invoked=True),
    EmptyReason.BINARY: lambda: refused(ScriptedEditor("\0"), invoked=True),
    EmptyReason.NOT_UTF8: lambda: refused(ScriptedEditor("\udce9"), invoked=True),
    EmptyReason.SECRET_FILE: lambda: reach_file(EmptyReason.SECRET_FILE),
    EmptyReason.IGNORED_FILE: lambda: reach_file(EmptyReason.IGNORED_FILE),
    EmptyReason.NOT_SENT: lambda: reach_file(EmptyReason.NOT_SENT),
    EmptyReason.INSIDE_WORD: lambda: refused(ScriptedEditor("return", cursor=3)),
    EmptyReason.IN_INDENTATION: lambda: refused(ScriptedEditor("if x:\n    y", cursor=6)),
    EmptyReason.DELETING: reach_deleting,
    EmptyReason.AFTER_REJECTION: reach_after_rejection,
    EmptyReason.NOT_READY: reach_not_ready,
    EmptyReason.OUTDATED: reach_outdated,
    EmptyReason.SUPERSEDED: reach_superseded,
    EmptyReason.CANCELLED: reach_cancelled,
    EmptyReason.ENGINE_ERROR: reach_error,
    EmptyReason.MODEL_SILENT: lambda: ScriptedEditor("x = ").ask_and_hear(""),
    EmptyReason.FILTERED: lambda: ScriptedEditor("x = ").ask_and_hear(None, dropped="repeats_suffix"),
    EmptyReason.HIDDEN: lambda: ScriptedEditor("x = ", gate=Strictness.HIGH).ask_and_hear(") ]", each_token=(-4.0,)),
}


@pytest.mark.parametrize("reason", sorted(set(EmptyReason) - {EmptyReason.NOT_OPEN}))
async def test_every_reason_occurs(reason):
    answer = await REACHED[reason]()
    assert answer.reason is reason
    assert not answer.remainders
