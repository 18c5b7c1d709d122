"""How long no suggestion appears after a deletion and a rejection, and in which lines none does."""

import pytest
from lsprotocol import types

from lsp_server.empty_reason import EmptyReason
from lsp_server.settings.table import Settings
from lsp_server.suggesting.request_policy import MAX_LINE_CHARACTERS, RequestPolicy
from tests.lsp_server.scripted_editor import URI, ScriptedEditor

QUIET_S = 10


def refusal(editor):
    return editor.policy.silence(editor.document) or editor.policy.automatic_refusal(editor.document, editor.place())


def test_a_deletion_keeps_quiet_until_time_has_passed_or_something_is_typed():
    editor = ScriptedEditor("x = 12", quiet_ms=1000 * QUIET_S)
    editor.delete(1)
    assert refusal(editor) is EmptyReason.DELETING
    editor.clock.now += QUIET_S
    assert refusal(editor) is None
    editor.delete(1)
    assert refusal(editor) is EmptyReason.DELETING
    editor.type("3")
    assert refusal(editor) is None


def test_a_replaced_text_is_no_deletion_and_ends_the_quiet_after_one():
    editor = ScriptedEditor("x = 12", quiet_ms=1000 * QUIET_S)
    editor.edit(4, 6, "34")
    assert refusal(editor) is None
    editor.delete(1)
    editor.edit(4, 5, "5")
    assert refusal(editor) is None


BLANK_LINE = "def f():\n    x = 1\n    "


def test_blanks_that_the_editor_trims_with_a_line_break_are_no_deletion():
    editor = ScriptedEditor(BLANK_LINE, quiet_ms=1000 * QUIET_S)
    editor.break_line("    ")
    assert editor.document.lines.text() == "def f():\n    x = 1\n\n    "
    assert refusal(editor) is None
    editor.edit(0, 3, "")
    assert refusal(editor) is EmptyReason.DELETING
    editor.type(" ")
    editor.break_line("    ")
    assert refusal(editor) is None


@pytest.mark.parametrize(("text", "removed"), [(BLANK_LINE, 4), (BLANK_LINE, 1), ("if a:\n\tb()\n\t\t", 1)])
def test_removed_indentation_is_no_deletion(text, removed):
    editor = ScriptedEditor(text, quiet_ms=1000 * QUIET_S)
    editor.delete(removed)
    assert refusal(editor) is None


@pytest.mark.parametrize("text", ["x = ", "def f():\n    x = 1\n", "x = 1\n    y"])
def test_other_blanks_and_line_breaks_are_deletions(text):
    editor = ScriptedEditor(text, quiet_ms=1000 * QUIET_S)
    editor.delete(1)
    assert refusal(editor) is EmptyReason.DELETING


def test_removed_indentation_does_not_end_the_quiet_after_a_deletion():
    editor = ScriptedEditor("if a:\n    b", quiet_ms=1000 * QUIET_S)
    for _ in range(2):
        editor.delete(1)
        assert refusal(editor) is EmptyReason.DELETING


def test_several_cursors_that_only_delete_keep_quiet():
    editor = ScriptedEditor("x = 12\ny = 12", quiet_ms=1000 * QUIET_S)
    editor.edit_together((12, 13, ""), (5, 6, ""))
    assert refusal(editor) is EmptyReason.DELETING
    editor.edit_together((11, 12, "3"), (4, 5, "3"))
    assert refusal(editor) is None


def test_an_event_without_changes_neither_begins_nor_ends_the_quiet():
    editor = ScriptedEditor("x = 12", quiet_ms=1000 * QUIET_S)
    editor.edit_together()
    assert refusal(editor) is None
    editor.delete(1)
    editor.edit_together()
    assert refusal(editor) is EmptyReason.DELETING


def test_neither_typing_nor_a_deletion_ends_the_quiet_after_a_rejection():
    editor = ScriptedEditor("x = ", quiet_ms=1000 * QUIET_S)
    editor.policy.note_rejection(editor.document)
    editor.type("1")
    editor.delete(1)
    editor.type("2")
    assert refusal(editor) is EmptyReason.AFTER_REJECTION
    editor.clock.now += QUIET_S
    assert refusal(editor) is None


def test_the_quiet_ends_when_the_document_is_closed():
    editor = ScriptedEditor("x = ", quiet_ms=1000 * QUIET_S)
    editor.policy.note_rejection(editor.document)
    editor.policy.forget("file:///project/b.py")
    assert refusal(editor) is EmptyReason.AFTER_REJECTION
    editor.policy.forget(URI)
    assert refusal(editor) is None


def test_only_a_line_of_more_than_the_maximum_is_too_long():
    for characters, expected in ((MAX_LINE_CHARACTERS, None), (MAX_LINE_CHARACTERS + 1, EmptyReason.LINE_TOO_LONG)):
        editor = ScriptedEditor("x" * characters)
        assert editor.policy.refusal(editor.document, editor.place()) is expected


def test_the_quiet_in_a_cell_lasts_as_long_as_the_settings_of_its_notebook_say():
    editor, of_notebook = ScriptedEditor(), {"file:///n.ipynb": Settings(quiet_ms=1000 * QUIET_S)}
    cell = editor.documents.open(types.TextDocumentItem("cell:1", "python", 1, "x = "), "file:///n.ipynb")
    policy = RequestPolicy(
        lambda uri: of_notebook.get(uri, Settings(quiet_ms=0)), editor.quiet, lambda _uri: None, None, editor.clock
    )
    policy.note_rejection(cell)
    assert policy.silence(cell) is EmptyReason.AFTER_REJECTION
    editor.clock.now += QUIET_S
    assert policy.silence(cell) is None
