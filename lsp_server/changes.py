"""What changes of documents, of settings and folders, and of files on disk set in motion."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from lsprotocol import types

from completion.language_ids import endings
from lsp_server.client_settings import ClientSettings
from lsp_server.documents.documents import Document, DocumentStore
from lsp_server.documents.edit_log import last_insertion
from lsp_server.documents.rules.repository import RULE_FILES
from lsp_server.documents.text_lines import Edit, Place
from lsp_server.documents.workspace_feed import WorkspaceFeed
from lsp_server.documents.workspace_folders import WorkspaceFolders
from lsp_server.engine.link import EngineLink
from lsp_server.settings.config import PROJECT_FILE, user_file
from lsp_server.suggesting.inline_completion import InlineCompleter
from lsp_server.suggesting.preparation import Preparer
from lsp_server.suggesting.quiet_controls import QuietControls
from lsp_server.suggesting.request_policy import RequestPolicy
from lsp_server.telemetry.client_events import ClientEvents
from lsp_server.telemetry.recorder import SuggestionRecorder
from lsp_server.telemetry.store import usable_store_path
from lsp_server.wire.document_uri import path_of
from lsp_server.workspace_reader import real_path


@dataclass(frozen=True, slots=True)
class DocumentChanges:
    """Keeps the documents of a client as its messages say, and tells everything that depends on their text."""

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
        self.policy.quiet.document_closed(params.notebook_document.uri)

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


@dataclass(slots=True)
class WorkspaceChanges:
    """Keeps settings and folders as the client and the files say, and applies them to what depends on them."""

    settings: ClientSettings
    folders: WorkspaceFolders
    feed: WorkspaceFeed
    quiet: QuietControls
    engine: EngineLink
    recorder: SuggestionRecorder
    _is_closed: bool = False
    _applying: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def start(self) -> None:
        """Request the client's settings, and apply all."""
        await self.settings.pull()
        await self._use_settings()

    async def close(self) -> None:
        """Close the engine and the telemetry. Later changes have no effect."""
        async with self._applying:
            self._is_closed = True
            await self.engine.close()
            await self.recorder.close()

    async def change_configuration(self, params: types.DidChangeConfigurationParams) -> None:
        """Handle a change of the client's settings."""
        before = self._choice()
        await self.settings.changed(params.settings)
        await self._settings_changed(before)

    async def change_folders(self, params: types.DidChangeWorkspaceFoldersParams) -> None:
        """Handle added and removed workspace folders."""
        self.folders.remove(params.event.removed)
        self.folders.add(params.event.added)
        self.feed.folders_closed(folder.uri for folder in params.event.removed)
        self.settings.load()  # before the client answers: a project's file counts at once
        await self.settings.pull()
        await self._use_settings()
        await self.feed.scan()

    async def change_files(self, params: types.DidChangeWatchedFilesParams) -> None:
        """Handle changes of files on disk."""
        if _any_has_settings(params.changes):
            before = self._choice()
            self.settings.load()
            await self._settings_changed(before)
        await self.feed.files_changed(params.changes)

    async def saved(self, params: types.DidSaveTextDocumentParams) -> None:
        """Handle a saved document as a changed file: not every client says which files change on disk."""
        event = types.FileEvent(params.text_document.uri, types.FileChangeType.Changed)
        await self.change_files(types.DidChangeWatchedFilesParams([event]))

    async def _settings_changed(self, before: tuple[object, ...]) -> None:
        """Apply the current settings. If they choose other files for the engine than those before, search for them."""
        await self._use_settings()
        if self._choice() != before:
            await self.feed.scan()

    def _choice(self) -> tuple[object, ...]:
        """Return the settings that choose files for the engine."""
        folders = [self.settings.of(folder.uri).index_files for folder in self.folders]
        return self.settings.now.engine_send, self.settings.now.index_files, *folders

    async def _use_settings(self) -> None:
        """Apply the current settings to the recorder and the engine.

        They may be newer than the change that caused this call: a call waits for the calls before it.
        """
        async with self._applying:
            if self._is_closed:
                return
            if (is_wanted := self.settings.now.telemetry) != self.recorder.telemetry.is_on:
                await self.recorder.switch(usable_store_path() if is_wanted else None)
            self.quiet.update()
            await self.engine.use(self.settings.now)


def watched() -> list[str]:
    """Return globs of the files that a client watches on disk: code, ignore files and a project's settings.

    Emacs watches each folder with such a file. That of every folder is more than it may watch, in a large repository.
    """
    code = ",".join(ending.removeprefix(".") for ending in endings())
    return [f"**/*.{{{code}}}", f"**/{{{','.join((PROJECT_FILE, *RULE_FILES))}}}"]


def _any_has_settings(changes: Sequence[types.FileEvent]) -> bool:
    """Return whether a file that changed is a project's settings file, or the user's own or the one it links to."""
    paths = {user_file(), real_path(user_file())}
    names = tuple(f"/{name}" for name in (PROJECT_FILE, *(path.name for path in paths)))
    likely = [change.uri for change in changes if change.uri.endswith(names)]  # `path_of` is slow for thousands
    return any(uri.endswith(f"/{PROJECT_FILE}") or path_of(uri) in paths for uri in likely)
