"""A client without streaming gets a block's first line when that is certain, and the others after its acceptance."""

import pytest

from tests.lsp_server.scripted_editor import ScriptedEditor, settle, texts

START = "def f(x):\n    "
FIRST, BLOCK = "a = x", "a = x\n    b = a\n    return b"
LINE = len(FIRST)


async def first_line_of(editor, *, invoked=False):
    """Return the task of a request whose block has its first line, and goes on."""
    task = editor.ask(invoked=invoked)
    await editor.engine.wait_for_request(1)
    await editor.engine.say(FIRST)
    assert not task.done()
    await editor.engine.say(f"{FIRST}\n    b", line=LINE)
    return task


@pytest.mark.parametrize("invoked", [False, True])
async def test_the_first_line_is_the_answer_while_the_block_grows(invoked):
    editor = ScriptedEditor(START, streaming=False)
    task = await first_line_of(editor, invoked=invoked)
    assert task.done()
    assert texts(await task) == [FIRST]
    assert not editor.engine.closed
    await editor.close()


async def test_a_client_that_shows_how_text_grows_gets_the_block():
    editor = ScriptedEditor(START)
    task = await first_line_of(editor)
    assert not task.done()
    await editor.engine.say(BLOCK, done=True)
    assert texts(await task) == [BLOCK]


async def test_the_other_lines_are_there_when_the_first_is_accepted():
    editor = ScriptedEditor(START, streaming=False, ahead=True)
    answer = await (await first_line_of(editor))
    await editor.engine.say(BLOCK, done=True)
    editor.type(FIRST)
    editor.completer.accepted(editor.document.uri, answer.id)
    assert texts(await editor.ask()) == [BLOCK.removeprefix(FIRST)]
    assert len(editor.engine.requests) == 1


async def test_a_query_after_the_accepted_line_gets_the_block_that_still_grows():
    editor = ScriptedEditor(START, streaming=False)
    answer = await (await first_line_of(editor))
    editor.type(FIRST)
    task = editor.ask()
    await settle()
    editor.completer.accepted(editor.document.uri, answer.id)
    await editor.engine.say(f"{FIRST}\n    b = a\n", line=LINE)
    assert not task.done()
    await editor.engine.say(BLOCK, done=True)
    assert texts(await task) == [BLOCK.removeprefix(FIRST)]
    assert len(editor.engine.requests) == 1


async def test_a_manual_request_gets_the_first_suggestion_and_one_more_all_of_them():
    editor = ScriptedEditor("x = ", streaming=False, suggestions=2)
    first = editor.ask(invoked=True)
    await editor.engine.wait_for_request(1)
    await editor.engine.offer("one")
    assert texts(await first) == ["one"]
    again = editor.ask(invoked=True)
    await settle()
    assert not again.done()
    await editor.engine.offer("one", "two", done=True)
    assert texts(await again) == ["one", "two"]
    assert len(editor.engine.requests) == 1


async def test_closers_after_the_cursor_that_only_later_lines_contain_stay():
    editor = ScriptedEditor("f({})", 3, language="javascript", streaming=False)
    task = editor.ask(invoked=True)
    await editor.engine.wait_for_request(1)
    await editor.engine.say("\n  a: 1,\n  b", line=8, replace_after=0)
    assert texts(await task) == ["\n  a: 1,"]
    await editor.close()
