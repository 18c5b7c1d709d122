"""What the opening, changing and closing of a document sets in motion, cells of notebooks included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lsprotocol import types

from lsp_server.documents.documents import Document, DocumentStore
from lsp_server.documents.edit_places import last_insertion
from lsp_server.documents.text_lines import Edit, Place
from lsp_server.documents.workspace_feed import WorkspaceFeed
from lsp_server.suggesting.inline_completion import InlineCompleter
from lsp_server.suggesting.preparation import Preparer
from lsp_server.suggesting.request_policy import RequestPolicy
from lsp_server.telemetry.client_events import ClientEvents
from lsp_server.telemetry.recorder import SuggestionRecorder


@dataclass(frozen=True, slots=True)
class DocumentChanges:
    """Keeps the documents of a client as its messages say, and tells everything that depends on their text.

    Attributes:
        documents: The documents.
        policy: Notes what was deleted.
        completer: Cancels what no longer fits.
        recorder: Follows the fate of accepted suggestions.
        client_events: What the client may still report of suggestions.
        feed: Sends open documents to the engine.
        preparer: Prepares the engine's cache for the place of the change.
    """

    documents: DocumentStore
    policy: RequestPolicy
    completer: InlineCompleter
    recorder: SuggestionRecorder
    client_events: ClientEvents
    feed: WorkspaceFeed
    preparer: Preparer

    def open(self, params: types.DidOpenTextDocumentParams) -> None:
        """Handle an opened document."""
        document = self.documents.open(params.text_document)
        self.feed.opened(document)
        self.preparer.soon(document, Place(0, 0))

    def change(self, params: types.DidChangeTextDocumentParams) -> None:
        """Handle a change of a document's text."""
        changed = self.documents.change(params)
        if changed is not None:
            self._text_changed(*changed)

    def close(self, uri: str) -> None:
        """Handle a closed document."""
        document = self.documents.close(uri)
        if document is not None:
            self._closed(document)

    def change_notebook(self, params: types.DidChangeNotebookDocumentParams) -> None:
        """Handle added, removed and changed cells of a notebook."""
        cells = params.change.cells
        if cells is None:
            return
        if cells.structure is not None:
            for document in self.documents.change_cells(params.notebook_document.uri, cells.structure):
                self._closed(document)
            self.completer.drop_kept()
        for content in cells.text_content or ():
            self.change(types.DidChangeTextDocumentParams(content.document, content.changes))

    def close_notebook(self, params: types.DidCloseNotebookDocumentParams) -> None:
        """Handle a closed notebook."""
        for document in self.documents.close_notebook(params):
            self._closed(document)

    def _text_changed(self, document: Document, edits: Sequence[Edit]) -> None:
        self.policy.note_edits(document, edits)
        self.completer.document_changed(document, edits)
        self.recorder.text_changed(document, edits)
        self.client_events.text_changed(document, edits)
        self.feed.changed(document)
        if edits:
            last = last_insertion(edits)
            self.preparer.paused_at(document, document.lines.advance(last.start, len(last.inserted)))

    def _closed(self, document: Document) -> None:
        self.completer.clear(document.uri)
        self.policy.forget(document.uri)
        self.client_events.forget(document)
        self.recorder.document_closed(document)
        self.preparer.forget(document)
        self.feed.closed(document)
