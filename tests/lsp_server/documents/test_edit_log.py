"""The edit log has what changed, as an editor's user would tell it, and is stable while one types."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types

from completion.edits import MAX_HISTORY_CHARACTERS
from lsp_server.documents import edit_log
from lsp_server.documents.documents import Document
from lsp_server.documents.text_lines import TextLines

TEXT = "".join(f"line {number}\n" for number in range(100))
ELSEWHERE = -1


class Editor:
    def __init__(self, text=TEXT):
        self.document = Document("file:///a.py", "python", 0, TextLines(text))

    def edit(self, start, end, text):
        span = types.Range(types.Position(*start), types.Position(*end))
        self.document.apply([types.TextDocumentContentChangePartial(span, text)], 0)

    def write(self, line, column, text):
        """Type a text key by key, and return the histories after each key."""
        seen = []
        for key in text:
            self.edit((line, column), (line, column), key)
            line, column = (line + 1, 0) if key == "\n" else (line, column + 1)
            seen.append(self.history(line))
        return seen

    def history(self, line=ELSEWHERE):
        return self.document.edits.history(line, self.document.lines)


def test_typing_is_one_hunk_that_is_finished_when_editing_goes_on_elsewhere():
    editor = Editor()
    assert set(editor.write(3, 6, "\nfirst new\nsecond new")) == {""}
    finished = "@@\n+first new\n+second new\n"
    assert set(editor.write(50, 7, "0\nthird")) == {finished}
    assert editor.history() == finished + "@@\n-line 48\n+line 480\n+third\n"


def test_deleted_lines_are_shown_at_the_cursor_while_their_replacement_is_typed():
    editor = Editor()
    editor.edit((5, 0), (7, 6), "")
    gone = "@@\n-line 5\n-line 6\n-line 7\n"
    assert {editor.history(5), *editor.write(5, 0, "line 5 and\nmore")} == {gone}
    editor.edit((6, 3), (6, 4), "")  # takes back a typed character
    assert editor.history(6) == gone
    assert editor.history() == gone + "+line 5 and\n+mor\n"


def test_only_what_was_deleted_at_the_cursor_counts_as_deleted_there():
    editor = Editor()
    editor.edit((5, 0), (6, 0), "")
    editor.write(20, 7, "!")
    log = editor.document.edits
    assert not log.has_deleted(20)
    editor.edit((40, 0), (40, 4), "")
    assert log.has_deleted(40)
    editor.edit((20, 7), (20, 8), "")  # the typed character: what is left are two deletions elsewhere
    assert editor.history(60).endswith("-line 41\n+ 41\n")
    assert not log.has_deleted(60)


def test_a_deletion_beside_another_edit_that_is_undone_deletes_nothing():
    editor = Editor()
    editor.write(5, 6, " and more")
    editor.edit((6, 0), (7, 0), "")
    assert editor.document.edits.has_deleted(6)
    editor.edit((6, 0), (6, 0), "line 6\n")
    assert editor.history(5) == ""
    assert not editor.document.edits.has_deleted(5)
    editor.edit((5, 0), (5, 4), "")
    assert editor.document.edits.has_deleted(5)
    editor.edit((5, 0), (5, 0), "line")
    assert editor.history(5) == ""


def test_trimmed_blanks_do_not_count_as_deleted():
    editor = Editor("x = 1\n")
    editor.write(0, 5, "\n    ")
    editor.edit((1, 4), (1, 4), "\n    ")
    editor.edit((1, 0), (1, 4), "")
    assert not editor.document.edits.has_deleted(2)
    assert editor.history(2) == ""


def test_taking_back_what_was_typed_deletes_nothing():
    editor = Editor()
    editor.write(5, 6, "00")
    editor.edit((5, 7), (5, 8), "")
    assert editor.history(5) == ""


@pytest.mark.parametrize("between", [False, True])
def test_an_undone_hunk_disappears(between):
    editor = Editor()
    editor.edit((5, 0), (7, 0), "")
    if between:
        editor.write(60, 0, "x")
    editor.edit((5, 0), (5, 0), "line 5\nline 6\n")
    assert "line 5" not in editor.history() + editor.history(5)


def test_hunks_move_with_the_lines_above_them_and_are_continued_there():
    editor = Editor()
    editor.write(50, 7, "!")
    editor.edit((0, 0), (0, 0), "import re\nimport os\n")
    editor.write(52, 8, "?")
    assert editor.history() == "@@\n+import re\n+import os\n@@\n-line 50\n+line 50!?\n"


@pytest.mark.parametrize(
    "text",
    ["x" * 301, "pasted\n" * 600, "x\n" * 200, "\n" * 3, "    "],
    ids=["long line", "paste", "many short lines", "blank lines", "indentation"],
)
def test_data_pastes_and_formatting_are_left_out(text):
    editor = Editor()
    editor.edit((5, 0), (5, 0), text)
    assert editor.history() == editor.history(5) == ""


def test_a_text_that_is_sent_whole_is_the_change_in_it():
    editor = Editor()
    whole = types.TextDocumentContentChangeWholeDocument(TEXT.replace("line 7\n", "seven\n"))
    editor.document.apply([whole], 0)
    assert editor.history() == "@@\n-line 7\n+seven\n"


def test_the_log_is_bounded():
    editor = Editor("x = 1\n" * 10_000)
    for line in range(0, 10_000, 10):
        editor.edit((line, 0), (line, 0), "y" * 250 + "\n" + "z" * 250 + "\n")
    assert editor.history().count("@@\n") == edit_log.SHOWN_HUNKS
    for line in range(5, 9_000, 1_000):
        editor.edit((line, 0), (line + 150, 0), "much\n" * 700)
    assert 0 < len(editor.history()) <= MAX_HISTORY_CHARACTERS


POSITIONS = st.tuples(st.integers(0, 8), st.integers(0, 4))
TEXTS = st.lists(st.sampled_from(["a", "b", "c", "\n", "\r\n", "\r"]), max_size=20).map("".join)


@settings(max_examples=500)
@given(TEXTS, st.lists(st.tuples(POSITIONS, POSITIONS, TEXTS), max_size=edit_log.SHOWN_HUNKS), st.integers(0, 9))
def test_taking_the_hunks_back_gives_the_text_before_all_edits(text, edits, line):
    editor = Editor(text)
    for start, end, new in edits:
        editor.edit(*sorted((start, end)), new)
        editor.history(line)
    lines = editor.history().splitlines()
    added, deleted = (Counter("".join(each[1:] for each in lines if each[0] == sign)) for sign in "+-")
    now = Counter(editor.document.lines.text())
    assert {key: now[key] - added[key] + deleted[key] for key in "abc"} == {key: text.count(key) for key in "abc"}
