"""Chooses the workspace's files for the engine: open documents first, then files next to them, then the others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from lsprotocol import types

from completion.request import Closing, WorkspaceUpdate
from completion.workspace.secret_contents import secret_in
from completion.workspace.secret_files import is_secret, is_suspect
from lsp_server.documents.documents import Document, DocumentStore
from lsp_server.documents.file_policy import FilePolicy
from lsp_server.documents.workspace_folders import Folder, FolderFile, WorkspaceFolders
from lsp_server.documents.workspace_outbox import MAX_BATCH_FILES, WorkspaceOutbox
from lsp_server.documents.workspace_search import MAX_FILE_BYTES, exchanged, read_changes, search, search_folder
from lsp_server.empty_reason import EmptyReason
from lsp_server.settings.table import Settings
from lsp_server.wire.document_uri import named_path, path_of
from lsp_server.workspace_reader import identity_of, read_text

_PAUSE_S = 1.0
"""Time from a change until it is sent, in seconds; what changes meanwhile is sent with it."""
_CHECK_S = 30.0
"""Minimum time from one check for files that changed on disk to the next, in seconds."""


@dataclass(slots=True)
class WorkspaceFeed:
    """Finds the files that the policy allows and what changes in them, and gives them to the outbox.

    Of loose files, only open documents are sent. All text that is sent comes from `_text_of`, which checks the policy.

    Attributes:
        settings: Returns the settings of a folder, by its URI.
        is_trusted: Returns whether the user says that a file holds no secrets.
    """

    folders: WorkspaceFolders
    documents: DocumentStore
    send: Callable[[WorkspaceUpdate | Closing], Awaitable[None]]
    settings: Callable[[str], Settings]
    pause_s: float = _PAUSE_S
    may_send: Callable[[FolderFile], bool] = lambda _file: True
    is_trusted: Callable[[Path], bool] = lambda _path: False
    check_s: float = _CHECK_S
    _secrets: dict[Path, str] = field(default_factory=dict)  # what files hold that is not read
    _checked_at_s: float = field(default_factory=time.monotonic)
    _checking: asyncio.Task[None] | None = None
    _policies: dict[Folder, FilePolicy] = field(default_factory=dict)
    _near: set[Path] = field(default_factory=set)  # folders whose files come first
    _entered: set[FolderFile] = field(default_factory=set)  # documents in folders that became near since the last scan
    _scan_number: int = 0  # of the newest scan; older ones stop
    _rescanning: asyncio.Task[None] | None = None
    _learning: dict[Path, asyncio.Task[None]] = field(default_factory=dict)  # what opened files are and hold
    _judged: dict[Path, object] = field(default_factory=dict)  # the policy's stamp when it judged an opened file
    _outbox: WorkspaceOutbox = field(init=False)

    def __post_init__(self) -> None:
        """Connect the outbox with what chooses its files."""
        self._outbox = WorkspaceOutbox(self.send, self._text_of, self._before_batch, self.documents.get, self.pause_s)

    def refusal_of(self, uri: str) -> EmptyReason | None:
        """Return why a document's file may not be read; None if it may.

        What a client shows of a file of the workspace under another scheme, such as an older version, is no more.
        """
        path = named_path(uri)
        if path is None or (path_of(uri) is None and self.folders.folder_of(path) is None):
            name = uri.partition(":")[2].partition("?")[0]
            return EmptyReason.SECRET_FILE if is_secret(name) else None
        holds_secret = path in self._secrets and not self.is_trusted(path)
        found = self._refusal(FolderFile(self.folders.home_of(path), path))
        return found or (EmptyReason.SECRET_FILE if holds_secret else None)

    async def consult(self, uri: str) -> None:
        """Wait until `refusal_of` answers at once: ignore files are read, and git is asked, on another thread.

        Cancelling stops the wait alone, because others may wait for the same answer.
        """
        path = named_path(uri)
        if path is None:
            return
        if (learning := self._learning.get(path)) is not None and not learning.done():
            await asyncio.wait([learning])
        if path_of(uri) is not None or self.folders.folder_of(path) is not None:
            await self._consult(FolderFile(self.folders.home_of(path), path))

    def secret_of(self, uri: str) -> str:
        """Return the sentence that says why a document counts as secret, and what to do if it is not."""
        path = path_of(uri)
        name = path.name if path else uri
        why = f"it seems to hold {self._secrets[path]}" if path in self._secrets else "its name is one of secrets"
        return f"{name} is never read, because {why}. If it holds none, name it in `not_secret` of your own settings."

    async def scan(self) -> None:
        """Search all folders: send the files that are allowed, and withdraw those that no longer are.

        A newer scan or `close` stops an older one: scans of large folders neither pile up nor delay the process's end.
        """
        self._scan_number += 1
        number = self._scan_number
        limits = {folder: self.settings(folder.uri).index_files for folder in self.folders}
        limit = max(limits.values(), default=self.settings("").index_files)
        for policy in self._policies.values():
            policy.forget_rules()
        sent_before = frozenset(self._outbox.sent)
        near = self._near = {file.path.parent for file in self._opened()}
        policies = {folder: self._policy(folder) for folder in self.folders if limits[folder]}
        words, roots = frozenset(self.documents.words()), {folder.path for folder in limits}
        is_current = lambda: number == self._scan_number  # noqa: E731
        found = await asyncio.to_thread(search, policies, near, roots, limit, is_current, words)
        if number != self._scan_number:
            return
        sent = self._outbox.sent
        newer = [file for file in sent if file not in sent_before]  # the search may have missed them
        chosen = list(dict.fromkeys([*newer, *found]))[:limit]
        wanted = dict.fromkeys([*filter(self._is_indexed, self._opened()), *chosen])
        self._outbox.enqueue(sent.keys() - wanted.keys(), wanted=False, at_once=True)
        self._outbox.enqueue(wanted, at_once=True)

    def opened(self, document: Document) -> None:
        """Send the file of an opened document and those next to it, for which the last scan may have had no room."""
        file = self.folders.document_file_of(document.uri)
        if file is not None:
            self._learning[file.path] = asyncio.create_task(self._learn(file, document))
        self.changed(document)
        is_wanted = file is not None and file in self._outbox.waiting and not self._is_loose(file)
        if file is not None and is_wanted and file.path.parent not in self._near:
            self._near.add(file.path.parent)
            self._entered.add(file)

    def changed(self, document: Document) -> None:
        """Send the file of a document that was opened or changed, after a pause. Check the others now and then.

        Not every client says which files change on disk: what git or a formatter writes would be sent at no time.
        """
        is_due = time.monotonic() - self._checked_at_s >= self.check_s and not self._outbox.is_closed
        if is_due and (self._checking is None or self._checking.done()):
            self._checked_at_s = time.monotonic()
            self._checking = asyncio.create_task(self._send_changed())
        file = self.folders.document_file_of(document.uri)
        if file is not None and not document.notebook and self._is_indexed(file):
            self._outbox.enqueue([file])

    def closed(self, document: Document) -> None:
        """Let the engine forget a closed document after a pause, and send its file as it is on disk."""
        file = self.folders.document_file_of(document.uri)
        if file is not None and self._is_loose(file) and not self.documents.has_open_in(file.path.parent):
            self.folders_closed([file.folder.uri])
            self._policies.pop(file.folder, None)
        else:
            self.changed(document)
        if file is not None and (learning := self._learning.pop(file.path, None)) is not None:
            learning.cancel()
            self._judged.pop(file.path, None)
        self._outbox.document_closed(document.uri)

    def folders_closed(self, uris: Iterable[str]) -> None:
        """Let the engine forget closed folders, before anything else is sent."""
        self._outbox.folders_closed(uris)

    async def files_changed(self, events: Sequence[types.FileEvent]) -> None:
        """Send the files that changed on disk, after a pause; withdraw those that are gone, alone or with their folder.

        Scan all folders if an ignore file changed or a folder appeared.
        """
        sent = frozenset(self._outbox.sent)
        changes = await asyncio.to_thread(read_changes, events, self.folders, self._policy, sent)
        if changes is None:
            await self.scan()
            return
        known, new = changes
        limits = [self.settings(folder.uri).index_files for folder in self.folders]
        room = max(0, max(limits, default=0) - len(self._outbox.sent))
        self._outbox.enqueue([*known, *filter(self._is_indexed, new[:room])])

    async def close(self) -> None:
        """Stop scanning and sending. Later changes have no effect."""
        self._outbox.is_closed = True
        self._scan_number += 1
        tasks = self._tasks()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def idle(self) -> None:
        """Wait until all waiting files are sent."""
        while tasks := self._tasks():
            await asyncio.wait(tasks)

    def _tasks(self) -> list[asyncio.Task[None]]:
        tasks = self._outbox.sending, self._rescanning, self._checking, *self._learning.values()
        return [task for task in tasks if task is not None and not task.done()]

    async def _consult(self, file: FolderFile) -> None:
        policy = self._refreshed_policy(file)
        stamp = policy.stamp()
        if self._judged.get(file.path) != stamp:
            await asyncio.to_thread(policy.refusal, file.path, trusted=True)  # a name that says enough ends no search
            self._judged[file.path] = stamp

    async def _learn(self, file: FolderFile, document: Document) -> None:
        """Find out whether an opened file may be read and, if so, whether its text holds a secret by then."""
        await self._consult(file)
        if not self._refusal(file):
            await asyncio.to_thread(self._holds_secret, file.path, document.lines.text())

    def _refusal(self, file: FolderFile) -> EmptyReason | None:
        """Return why a file may not be read."""
        return self._refreshed_policy(file).refusal(file.path, trusted=self.is_trusted(file.path))

    def _refreshed_policy(self, file: FolderFile) -> FilePolicy:
        """Return a file's policy. If its ignore files changed, search all folders for what they forbid now.

        Not every client says which files change on disk.
        """
        policy = self._policy(file.folder)
        if policy.refresh(file.path):
            if self._rescanning is not None:
                self._rescanning.cancel()
            self._rescanning = asyncio.create_task(self.scan())
        return policy

    def _holds_secret(self, path: Path, text: str) -> bool:
        """Note what a file's text holds that must not be read; return whether it does."""
        self._secrets.pop(path, None)
        what = secret_in(text, is_suspect=is_suspect(path.as_posix())) if len(text) <= MAX_FILE_BYTES else ""
        if what and not self.is_trusted(path):
            self._secrets[path] = what
        return path in self._secrets

    async def _send_changed(self) -> None:
        """Send the files that are not as they were read, and withdraw those that are gone.

        Scan all folders if one is gone: it may have another name now, under which clients report none of its files.
        """
        read = {file: identity for file, identity in self._outbox.sent.items() if identity is not None}
        changed = await asyncio.to_thread(lambda: [file for file in read if identity_of(file.path) != read[file]])
        if await asyncio.to_thread(lambda: all(file.path.parent.is_dir() for file in changed)):
            self._outbox.enqueue(changed, at_once=True)
        else:
            await self.scan()

    async def _before_batch(self) -> None:
        """Queue the files next to opened documents, and ask git about all files of the next batch at once."""
        await self._enqueue_neighbours()
        next_files = list(islice(self._outbox.waiting, MAX_BATCH_FILES))
        for folder in {file.folder for file in next_files}:
            paths = [file.path for file in next_files if file.folder == folder]
            await asyncio.to_thread(self._policy(folder).ask, paths)

    async def _enqueue_neighbours(self) -> None:
        """Queue the files next to opened documents, in place of files elsewhere if there is no room for both."""
        found: dict[FolderFile, None] = {}
        while self._entered:
            file = self._entered.pop()
            policy = self._policy(file.folder)
            found |= dict.fromkeys(await asyncio.to_thread(search_folder, file.path.parent, file.folder, policy))
        if found:
            has = self._outbox.sent | {one: None for one, wanted in self._outbox.waiting.items() if wanted}
            self._outbox.waiting |= exchanged([*found], has, self._near, self.settings(file.folder.uri).index_files)

    async def _text_of(self, file: FolderFile) -> tuple[str | None, bool]:
        """Return a file's text and whether the editor has it open. The text is None if it may not or cannot be read."""
        is_inside = self.folders.home_of(file.path) == file.folder
        if not is_inside or self._refusal(file) or not self.may_send(file):
            return None, False
        document = self.documents.get_by_path(file.path)
        if document is not None:
            fit = len(document.lines) <= MAX_FILE_BYTES and document.unfit(MAX_FILE_BYTES) is None
            text = document.lines.text() if fit else None
        elif self._is_loose(file):
            return None, False
        else:
            text = await asyncio.to_thread(read_text, file.folder.path, file.path, MAX_FILE_BYTES)
        is_secret = text is not None and await asyncio.to_thread(self._holds_secret, file.path, text)
        return None if is_secret else text, document is not None

    def _is_indexed(self, file: FolderFile) -> bool:
        return self.settings(file.folder.uri).index_files > 0

    def _is_loose(self, file: FolderFile) -> bool:
        return self.folders.folder_of(file.path) is None

    def _opened(self) -> list[FolderFile]:
        """Return the files of the open documents."""
        return [file for document in self.documents if (file := self.folders.document_file_of(document.uri))]

    def _policy(self, folder: Folder) -> FilePolicy:
        policy = self._policies.get(folder)
        return policy or self._policies.setdefault(folder, FilePolicy(folder.path, is_opened=not folder.is_loose))
