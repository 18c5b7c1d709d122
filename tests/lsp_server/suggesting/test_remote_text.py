"""A model server's text that goes on from a local suggestion, or takes its place before anybody can have read it."""

from tests.lsp_server.scripted_editor import ScriptedEditor, settle, texts


def shown(editor):
    return [texts(answer) for _, answer, _ in editor.partials]


async def begin(editor):
    """Request a completion, and let the local model complete `value` while the server is silent."""
    task = editor.ask()
    await editor.engine.wait_for_request(1)
    await settle()
    await editor.engine.offer("value")
    return task


async def test_an_editor_with_streaming_shows_the_local_text_at_once_and_is_answered_with_the_grown_one():
    editor = ScriptedEditor("x = ", suggestions=1)
    task = await begin(editor)
    assert shown(editor) == [["value"]]
    assert not task.done()
    await editor.engine.offer("value + 1")
    await editor.engine.offer("value + 1", done=True)
    assert texts(await task) == ["value + 1"]
    assert shown(editor)[:2] == [["value"], ["value + 1"]]
    await editor.close()


async def test_an_editor_without_streaming_is_answered_at_once_and_keeps_that_text():
    editor = ScriptedEditor("x = ", streaming=False, suggestions=1)
    assert texts(await (await begin(editor))) == ["value"]
    await editor.engine.offer("other")
    await editor.engine.wait_for_request(2)
    await editor.engine.offer("value", done=True)
    assert texts(await editor.ask()) == ["value"]
    await editor.close()


async def test_a_text_that_takes_the_place_of_the_local_one_is_shown():
    editor = ScriptedEditor("x = ", suggestions=1)
    task = await begin(editor)
    await editor.engine.say("other")
    await editor.engine.say("other text", done=True)
    assert texts(await task) == ["other text"]
    assert shown(editor)[:3] == [["value"], ["other"], ["other text"]]
    await editor.close()


async def test_a_text_that_takes_back_what_the_user_typed_along_is_refused_and_the_local_model_goes_on():
    editor = ScriptedEditor("x = ", suggestions=1)
    task = editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("val")
    editor.type("v")
    newer = editor.ask()
    await editor.engine.say("other")
    await editor.engine.wait_for_request(2)
    assert editor.engine.closed == [0]
    assert not editor.engine.requests[1].remote
    await editor.engine.say("v")
    await editor.engine.say("value", done=True)
    assert texts(await newer) == ["alue"]
    assert texts(await task) == []
    assert ["other"] not in shown(editor)
    assert shown(editor)[-1] == ["alue"]
    await editor.close()


async def test_a_text_that_agrees_with_what_the_user_typed_along_is_shown():
    editor = ScriptedEditor("x = ", suggestions=1)
    task = editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("value")
    editor.type("v")
    newer = editor.ask()
    await editor.engine.say("version")
    await editor.engine.say("version = 1", done=True)
    assert texts(await newer) == ["ersion = 1"]
    assert texts(await task) == []
    assert len(editor.engine.requests) == 1
    await editor.close()
