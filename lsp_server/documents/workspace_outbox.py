"""Sends the workspace's files to the engine in batches in the background, and knows which files the engine has."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from completion.errors import DraftlineError, EngineSilentError
from completion.host.errors import QueueFullError
from completion.request import Closing, WorkspaceFile, WorkspaceUpdate
from lsp_server.documents.workspace_folders import FolderFile, updates
from lsp_server.workspace_reader import Identity, identity_of

_log = logging.getLogger(__name__)

MAX_BATCH_FILES = 40
_BATCH_BYTES = 1_000_000  # a batch is full once its texts reach this size
_MAX_SILENCES = 5
"""Number of messages in a row that an engine may leave unanswered before the next ones wait for a change or restart."""


@dataclass(slots=True)
class WorkspaceOutbox:
    """The files, closed documents and closed folders that the engine shall hear of.

    Attributes:
        text_of: Returns a file's text and whether the editor has it open. The text is None if it may not be sent.
        before_batch: Called before each batch; it may change what waits.
        pause_s: Time from a change until it is sent, in seconds; what changes meanwhile is sent with it.
        waiting: The files that are sent next, and whether the engine shall have each.
        sent: The files that the engine has, with their identities as they were read from disk; None for open ones.
    """

    send: Callable[[WorkspaceUpdate | Closing], Awaitable[None]]
    text_of: Callable[[FolderFile], Awaitable[tuple[str | None, bool]]]
    before_batch: Callable[[], Awaitable[None]]
    is_open: Callable[[str], object]
    pause_s: float
    waiting: dict[FolderFile, bool] = field(default_factory=dict)
    sent: dict[FolderFile, Identity | None] = field(default_factory=dict)
    sending: asyncio.Task[None] | None = None
    is_closed: bool = False
    _closed_documents: set[str] = field(default_factory=set)
    _closed_folders: set[str] = field(default_factory=set)

    def enqueue(self, files: Iterable[FolderFile], *, wanted: bool = True, at_once: bool = False) -> None:
        """Send files after a pause; withdraw those that are not `wanted`."""
        for file in files:
            self.waiting.pop(file, None)
            self.waiting[file] = wanted
        if self.waiting:
            self._start(at_once=at_once)

    def document_closed(self, uri: str) -> None:
        """Let the engine forget a closed document after a pause."""
        self._closed_documents.add(uri)
        self._start()

    def folders_closed(self, uris: Iterable[str]) -> None:
        """Let the engine forget closed folders, before anything else is sent."""
        self._closed_folders.update(uris)
        self.sent = {file: read for file, read in self.sent.items() if file.folder.uri not in self._closed_folders}
        self._start(at_once=True)

    def _start(self, *, at_once: bool = False) -> None:
        if not self.is_closed and (self.sending is None or self.sending.done()):
            self.sending = asyncio.create_task(self._work(0 if at_once else self.pause_s))

    async def _work(self, pause_s: float) -> None:
        await asyncio.sleep(pause_s)
        silences = 0
        while self.waiting or self._closed_documents or self._closed_folders:
            batch: dict[FolderFile, WorkspaceFile | None] = {}
            closing = self._next_closing()
            try:
                if closing != Closing():
                    await self.send(closing)
                closing = Closing()
                await self.before_batch()
                batch = await self._next_batch()
                for update in updates(batch):
                    await self.send(update)
                for file in [file for file, sent in batch.items() if sent is None]:
                    self.sent.pop(file, None)
                silences = 0
            except DraftlineError as error:
                _log.info("The workspace could not be sent: %s", error)
                silences = silences + 1 if isinstance(error, EngineSilentError) else 0
                if error.code == QueueFullError.code or 0 < silences < _MAX_SILENCES:
                    self._closed_documents.update(closing.documents)
                    self._closed_folders.update(closing.workspaces)
                    self.waiting = {file: sent is not None for file, sent in batch.items()} | self.waiting
                    await asyncio.sleep(self.pause_s)
                else:
                    self.waiting.clear()  # a restarted engine gets everything again

    def _next_closing(self) -> Closing:
        """Return the documents and folders closed since the last call, without documents that are open again."""
        documents = tuple(uri for uri in self._closed_documents if not self.is_open(uri))
        closing = Closing(documents, tuple(self._closed_folders))
        self._closed_documents.clear()
        self._closed_folders.clear()
        return closing

    async def _next_batch(self) -> dict[FolderFile, WorkspaceFile | None]:
        """Return the next files, each as it is sent; None for one that the engine has and may not have any more."""
        batch: dict[FolderFile, WorkspaceFile | None] = {}
        size = 0
        while self.waiting and size < _BATCH_BYTES and len(batch) < MAX_BATCH_FILES:
            file = next(iter(self.waiting))
            wanted = self.waiting.pop(file)
            identity = identity_of(file.path)  # before it is read: one that changes meanwhile is another one
            text, is_open = await self.text_of(file) if wanted else (None, False)
            if text is not None:
                size += len(text)
                self.sent[file] = None if is_open else identity  # before it is: a scan meanwhile withdraws it
                batch[file] = WorkspaceFile(file.name, text, is_open)
            elif file in self.sent:
                batch[file] = None
        return batch
