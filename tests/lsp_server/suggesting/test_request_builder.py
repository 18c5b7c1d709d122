"""Requests name a document by its workspace folder, or by its own folder if no workspace folder has it."""

from dataclasses import replace

import pytest
from lsprotocol import types

from lsp_server.documents.documents import DocumentStore
from lsp_server.documents.text_lines import Place
from lsp_server.documents.workspace_folders import WorkspaceFolders
from lsp_server.settings.table import DEFAULTS
from lsp_server.suggesting.request_builder import RequestBuilder


@pytest.mark.parametrize(
    ("uri", "path", "repository", "workspace"),
    [
        ("file:///home/me/app/lib/a.py", "lib/a.py", "app", "file:///home/me/app"),
        ("file:///home/me/notes/a.py", "a.py", "", "file:///home/me/notes"),  # a folder's name may be a person's
        ("untitled:Untitled-1", "Untitled-1.py", "", ""),
        ("untitled:", "", "", ""),
        ("vscode-notebook-cell:/home/me/app/a.ipynb#W0sZmlsZQ%3D%3D", "a.py", "", ""),
    ],
)
def test_a_document_is_named_by_its_folder(uri, path, repository, workspace):
    folders, documents = WorkspaceFolders(), DocumentStore()
    folders.add([types.WorkspaceFolder("file:///home/me/app", "app")])
    document = documents.open(types.TextDocumentItem(uri, types.LanguageKind.Python, 1, "x = "))
    request = RequestBuilder(documents, folders).build(document, Place(0, 4), DEFAULTS)
    assert (request.path, request.repository, request.workspace) == (path, repository, workspace)


def test_a_notebook_is_named_as_a_file_of_its_cells_language():
    folders, documents = WorkspaceFolders(), DocumentStore()
    folders.add([types.WorkspaceFolder("file:///home/me/app", "app")])
    item = types.TextDocumentItem("cell:1", types.LanguageKind.Python, 1, "x = ")
    notebook = types.NotebookDocument(
        "file:///home/me/app/lib/a.ipynb", "jupyter", 1, [types.NotebookCell(types.NotebookCellKind.Code, "cell:1")]
    )
    documents.open_notebook(types.DidOpenNotebookDocumentParams(notebook, [item]))
    request = RequestBuilder(documents, folders).build(documents.get("cell:1"), Place(0, 4), DEFAULTS)
    assert (request.path, request.repository) == ("lib/a.py", "app")


@pytest.fixture
def asked():
    """Names are noted at `place` of a document, which is then changed; what the request has at another place."""

    def ask(text, noted, place, *, version=1, change=None, settings=DEFAULTS):
        documents = DocumentStore()
        document = documents.open(types.TextDocumentItem("file:///a.py", types.LanguageKind.Python, 1, text))
        documents.note_names(document.uri, version, types.Position(*noted), ("total", "tax"))
        if change is not None:
            at = types.Range(types.Position(*place), types.Position(*place))
            document.apply([types.TextDocumentContentChangePartial(at, change)], 2)
            place = (place[0], place[1] + len(change))
        return RequestBuilder(documents, WorkspaceFolders()).build(document, Place(*place), settings).names

    return ask


def test_names_hold_for_the_name_that_is_begun_where_they_were_noted(asked):
    assert asked("x = order.", (0, 10), (0, 10)) == ("total", "tax")
    assert asked("x = order.", (0, 10), (0, 10), change="to") == ("total", "tax")
    assert asked("x = order.to", (0, 12), (0, 10)) == ("total", "tax"), "noted within the name"
    assert asked("x = order.", (0, 10), (0, 10), change="total.") == (), "another receiver"
    assert asked("x = order.\nx = order.", (0, 10), (1, 10)) == (), "another line"
    assert asked("x = order.", (0, 10), (0, 4)) == ()
    assert asked("x = order.", (0, 10), (0, 10), version=2) == (), "of another version"
    assert asked("x = order.", (0, 10), (0, 10), settings=replace(DEFAULTS, known_names=False)) == ()
