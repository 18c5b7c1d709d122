"""Edits of a selection: streamed, dropped when the document changes, refused with a sentence."""

import asyncio

import pytest
from lsprotocol import types

from completion.errors import ConversationError, PromptTooLongError
from completion.instruct import edit_request
from completion.request import CompletionEvent, StopReason, Suggestion
from lsp_server.editing.selection_edit import ENGINE_ENDED, TOO_LONG, EditOutcome, Selection, SelectionEditor
from lsp_server.empty_reason import EmptyReason
from lsp_server.messages import EditMessage
from tests.lsp_server.scripted_editor import URI, ScriptedEditor, settle

TEXT = "class A:\n    def f(self):\n        return 1\n\n    x = 2\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("    a\n      b\n\n    c\n", "a\n  b\n\nc"),
        ("\ta\r\n\t\tb\r\n", "a\n\tb"),
        ("a\n    b", "a\n    b"),
        ("\n\n  a\n \n  b\n \n\n", "a\n \nb"),
        (" \r\n  a\r\n\t", "a"),
        ("\n  \n", "\n  "),
        ("", ""),
    ],
)
def test_a_selection_without_its_indentation_is_restored(text, code):
    selection = Selection.of(text)
    assert selection.code == code
    assert selection.restored(code) == text


class Editor(ScriptedEditor):
    """Edits lines of one document."""

    def __init__(self, text=TEXT, **settings):
        super().__init__(text, **settings)
        self.shown = []
        self.editor = SelectionEditor(
            self.documents,
            self.policy,
            lambda: self.source,
            lambda document, *words: edit_request(*words, document.language),
            lambda id_, text: self.shown.append((id_, text)),
        )

    def start(self, first, last, version=1):
        """Start to edit whole lines."""
        start, end = types.Position(first, 0), types.Position(last, 0)
        return asyncio.ensure_future(self.editor.edit(EditMessage("e1", URI, version, start, end, "rename x")))

    async def reply(self, text, stop=None):
        event = CompletionEvent((Suggestion(text),), done=stop is not None, stop_reason=stop)
        self.engine.queues[-1].put_nowait(event)
        await settle()


async def test_the_text_streams_and_ends_at_the_fence_with_the_indentation_of_the_document():
    editor = Editor()
    edit = editor.start(1, 3)
    await settle()
    (request,) = editor.engine.requests
    assert "```python\ndef f(self):\n    return 1\n```" in request.messages[-1].content
    assert "rename x" in request.messages[-1].content
    await editor.reply("def g")
    await editor.reply("def g(self):\n    return 1\n``")
    await editor.reply("def g(self):\n    return 1\n```\nI renamed it.")
    assert await edit == EditOutcome("    def g(self):\n        return 1\n")
    assert editor.shown == [("e1", "    def g"), ("e1", "    def g(self):\n        return 1")]
    assert editor.engine.closed == [0]


async def test_blank_lines_around_the_code_stay_though_the_model_does_not_see_them():
    editor = Editor("def f():\n    return 1\n\n\ndef g():\n    return 2\n")
    edit = editor.start(0, 4)
    await settle()
    (request,) = editor.engine.requests
    assert "```python\ndef f():\n    return 1\n```" in request.messages[-1].content
    await editor.reply("def h():\n    return 1")
    await editor.reply("def h():\n    return 1\n```")
    assert await edit == EditOutcome("def h():\n    return 1\n\n\n")
    assert editor.shown == [("e1", "def h():\n    return 1")]


@pytest.mark.parametrize(("first", "last"), [(2, 2), (3, 4)], ids=["nothing", "the last line"])
async def test_lines_that_a_selection_without_a_line_end_gets_end_as_the_documents_do(first, last):
    editor = Editor("a = 1\r\nb = 2\r\n\r\nc = 3")
    edit = editor.start(first, last)
    await settle()
    await editor.reply("c = 3\nd = 4\n```")
    assert await edit == EditOutcome("c = 3\r\nd = 4")


async def test_a_turn_that_ends_without_a_fence_is_whole_and_one_that_is_cut_is_refused():
    for stop, outcome in (
        (StopReason.STOP_TOKEN, EditOutcome("    y = 2\n")),
        (StopReason.MAX_TOKENS, EditOutcome(reason=TOO_LONG)),
    ):
        editor = Editor()
        edit = editor.start(4, 5)
        await settle()
        await editor.reply("y = 2", stop)
        assert await edit == outcome


async def test_a_change_of_the_document_drops_the_edit():
    editor = Editor()
    edit = editor.start(1, 3)
    await settle()
    await editor.reply("def g")
    editor.type("z")
    await editor.reply("def g(self)")
    assert await edit == EditOutcome(reason=EmptyReason.OUTDATED.sentence)
    assert (editor.shown, editor.engine.closed) == ([("e1", "    def g")], [0])
    assert await editor.start(1, 3, version=1) == EditOutcome(reason=EmptyReason.OUTDATED.sentence)


async def test_cancelling_stops_the_engine():
    editor = Editor()
    edit = editor.start(1, 3)
    await settle()
    await editor.reply("def g")
    edit.cancel()
    with pytest.raises(asyncio.CancelledError):
        await edit
    assert editor.engine.closed == [0]


async def test_refusals_have_a_sentence():
    editor = Editor()
    edit = editor.start(1, 3)
    await settle()
    await editor.engine.fail(PromptTooLongError("The conversation has 9000 tokens."))
    assert await edit == EditOutcome(reason=TOO_LONG)
    edit = editor.start(1, 3)
    await settle()
    await editor.engine.fail(ConversationError("The model has no chat template."))
    assert await edit == EditOutcome(reason="The model has no chat template.")
    editor.refusal = EmptyReason.SECRET_FILE
    assert await editor.start(1, 3) == EditOutcome(reason=EmptyReason.SECRET_FILE.sentence)
    editor.refusal, editor.source = None, None
    assert await editor.start(1, 3) == EditOutcome(reason=EmptyReason.NOT_READY.sentence)
    editor.documents.close(URI)
    assert await editor.start(1, 3) == EditOutcome(reason=EmptyReason.NOT_OPEN.sentence)


async def test_a_reply_that_breaks_off_is_no_edit():
    editor = Editor()
    edit = editor.start(4, 5)
    await settle()
    await editor.reply("y =")
    editor.engine.queues[-1].put_nowait(None)
    assert await edit == EditOutcome(reason=ENGINE_ENDED)
