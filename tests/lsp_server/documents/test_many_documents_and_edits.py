"""Thousands of open documents, and thousands of edits in one message, cost what each of them costs."""

import cProfile
import time

import pytest
from lsprotocol import types

from lsp_server.documents.documents import Document, DocumentStore
from lsp_server.documents.text_lines import TextLines
from lsp_server.documents.workspace_feed import WorkspaceFeed
from lsp_server.documents.workspace_folders import WorkspaceFolders
from lsp_server.settings.table import Settings


def calls_of(profile):
    return sum(entry.callcount for entry in profile.getstats())


async def calls_of_documents(root, count, folders_of_files, *, loose):
    """The function calls of opening so many documents, of sending them and of closing them."""
    folders, documents, sent = WorkspaceFolders(), DocumentStore(), []
    if not loose:
        folders.add([types.WorkspaceFolder(root.as_uri(), "workspace")])

    async def send(message):
        sent.append(message)

    feed = WorkspaceFeed(folders, documents, send, Settings, pause_s=0.0)
    paths = [root / f"{number % folders_of_files}" / f"{number}.py" for number in range(count)]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
    with cProfile.Profile() as profile:
        for path in paths:
            feed.opened(documents.open(types.TextDocumentItem(path.as_uri(), "python", 1, "x = 1\n")))
        await feed.idle()
        for path in paths:
            feed.closed(documents.close(path.as_uri()))
        await feed.idle()
    assert sum(len(message.changed) for message in sent if hasattr(message, "changed")) >= count
    await feed.close()
    return calls_of(profile)


@pytest.mark.parametrize("loose", [False, True])
@pytest.mark.parametrize("folders_of_files", [1, 1000])
async def test_four_times_the_documents_cost_about_four_times_the_work(tmp_path, folders_of_files, loose):
    few = await calls_of_documents(tmp_path / "few", 60, folders_of_files, loose=loose)
    many = await calls_of_documents(tmp_path / "many", 240, folders_of_files, loose=loose)
    assert many < 6 * few


def test_a_file_is_found_by_its_path_until_it_closes(tmp_path):
    documents, path = DocumentStore(), tmp_path / "a b.py"
    for _ in range(2):  # an editor may open it again without closing it
        documents.open(types.TextDocumentItem(path.as_uri(), "python", 1, ""))
    assert documents.get_by_path(path) is not None
    assert documents.has_open_in(tmp_path)
    documents.close(path.as_uri())
    assert documents.get_by_path(path) is None
    assert not documents.has_open_in(tmp_path)


def inserted(count, line_of, column_of):
    places = [types.Position(line_of(number), column_of(number)) for number in range(count)]
    return [types.TextDocumentContentChangePartial(types.Range(place, place), "a") for place in places]


def test_an_edit_of_thousands_in_one_message_takes_few_calls():
    document = Document("u", "python", 1, TextLines("line\n" * 4000))
    with cProfile.Profile() as profile:
        document.apply(inserted(4000, lambda number: number, lambda _: 0), 2)
    assert document.lines.text() == "aline\n" * 4000
    assert calls_of(profile) < 200 * 4000


def test_thousands_of_edits_in_a_long_line_cost_about_what_they_cost_in_a_short_one():
    seconds = []
    for length in (2_000, 200_000):
        document = Document("u", "python", 1, TextLines("x" * length))
        edits = inserted(2000, lambda _: 0, lambda number, length=length: number * 99_991 % length)
        began = time.process_time()
        document.apply(edits, 2)
        seconds.append(time.process_time() - began)
        assert len(document.lines) == length + 2000
    assert seconds[1] < 6 * seconds[0]


def test_the_log_keeps_the_last_of_many_edits_where_they_are_now():
    document = Document("u", "python", 1, TextLines("line\n" * 3000))
    document.apply(inserted(1, lambda _: 2999, lambda _: 0), 2)
    document.apply(inserted(1500, lambda number: number, lambda _: 0), 3)
    shown = document.edits.edits(document.lines)
    assert shown[-1].new[-1] == "aline"
    for edit in shown:
        assert [document.lines.line(edit.line + number) for number in range(len(edit.new))] == list(edit.new)
