"""Feeds the engine's index of the workspace: open documents first, then their neighbours, then the rest."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from lsprotocol import types

from completion.errors import DraftlineError
from completion.request import Closing, WorkspaceFile, WorkspaceUpdate
from completion.workspace.secret_files import is_secret
from lsp_server.documents.documents import Document, DocumentStore
from lsp_server.documents.file_policy import FilePolicy, is_noise, is_rule_file, may_hold_secrets
from lsp_server.documents.workspace_folders import Folder, WorkspaceFolders, path_of
from lsp_server.empty_reason import EmptyReason
from lsp_server.settings.table import Settings
from lsp_server.workspace_reader import read_inside

_log = logging.getLogger(__name__)

FILE_BYTES = 300_000
"""Larger files are mostly generated."""

TOTAL_BYTES = 20_000_000
"""What one scan reads at most."""

_VISITS_FOR_EACH_FILE = 20
_BATCH_FILES = 40
_BATCH_BYTES = 1_000_000
_REST_S = 1.0


@dataclass(frozen=True, slots=True)
class _Known:
    """A file of a folder."""

    folder: Folder
    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(self.folder.path).as_posix()


class WorkspaceFeed:
    """Reads what may be read and sends it in the background, a batch at a time.

    Every text that leaves goes through `_text_of`, which asks the policy first.
    """

    def __init__(
        self,
        folders: WorkspaceFolders,
        documents: DocumentStore,
        send: Callable[[WorkspaceUpdate | Closing], Awaitable[None]],
        settings: Callable[[], Settings],
        rest_s: float = _REST_S,
    ) -> None:
        self._folders = folders
        self._documents = documents
        self._send = send
        self._settings = settings
        self._rest_s = rest_s
        self._policies: dict[Path, FilePolicy] = {}
        self._waiting: dict[_Known, None] = {}
        self._sent: set[_Known] = set()
        self._closed_documents: set[str] = set()
        self._closed_folders: set[str] = set()
        self._worker: asyncio.Task[None] | None = None

    def refusal_of(self, uri: str) -> EmptyReason | None:
        """Why a document's file may not be read, None if it may."""
        path = path_of(uri)
        if path is None:
            name = uri.partition(":")[2].partition("?")[0]
            return EmptyReason.SECRET_FILE if is_secret(name) else None
        folder = self._folders.folder_of(path)
        if folder is None:
            return EmptyReason.SECRET_FILE if may_hold_secrets(path) else None
        return self._policy(folder).refusal(path)

    async def scan(self) -> None:
        """Look through all folders: send what the engine may learn from, withdraw what may no longer be used."""
        limit = self._settings().index_files
        for policy in self._policies.values():
            policy.forget_rules()
        opened = [known for document in self._documents if (known := self._known(document.uri))]
        found = await asyncio.to_thread(self._find, list(self._folders), {known.path.parent for known in opened}, limit)
        gone = self._sent.difference(opened, found)
        self._enqueue([*opened, *found, *gone] if limit else [*gone], rest_s=0)

    def changed(self, document: Document) -> None:
        """An open document's text is new, or the document was opened: its file is sent after a rest."""
        known = self._known(document.notebook or document.uri)
        if known is not None and not document.notebook and self._settings().index_files:
            self._enqueue([known], rest_s=self._rest_s)

    def closed(self, document: Document) -> None:
        """A document was closed: after a rest the engine forgets it, and its file is sent as it is on disk."""
        self._closed_documents.add(document.uri)
        self.changed(document)
        self._start(self._rest_s)

    def folders_closed(self, uris: Iterable[str]) -> None:
        """Folders were closed: the engine forgets them before it is told anything else."""
        self._closed_folders.update(uris)
        self._sent = {known for known in self._sent if known.folder.uri not in self._closed_folders}
        self._start(rest_s=0)

    async def files_changed(self, events: Sequence[types.FileEvent]) -> None:
        """Files changed on disk."""
        paths = [path for event in events if (path := path_of(event.uri))]
        if any(is_rule_file(path) for path in paths):
            await self.scan()
        else:
            room = max(0, self._settings().index_files - len(self._sent))
            known = [one for event in events if (one := self._known(event.uri)) and not is_noise(one.path)]
            new = [one for one in known if one not in self._sent]
            self._enqueue([*(one for one in known if one in self._sent), *new[:room]], rest_s=self._rest_s)

    async def close(self) -> None:
        """Stop sending."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)

    async def idle(self) -> None:
        """Wait until everything that waits was sent."""
        while self._worker is not None and not self._worker.done():
            await asyncio.wait([self._worker])

    def _enqueue(self, files: Iterable[_Known], rest_s: float) -> None:
        for known in files:
            self._waiting.pop(known, None)
            self._waiting[known] = None
        if self._waiting:
            self._start(rest_s)

    def _start(self, rest_s: float) -> None:
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work(rest_s))

    async def _work(self, rest_s: float) -> None:
        await asyncio.sleep(rest_s)
        while self._waiting or self._closed_documents or self._closed_folders:
            closing = self._next_closing()
            try:
                if closing != Closing():
                    await self._send(closing)
                for update in await self._next_batch():
                    await self._send(update)
            except DraftlineError as error:
                _log.info("The workspace could not be sent: %s", error)
                self._waiting.clear()  # an engine that comes back is told everything again

    def _next_closing(self) -> Closing:
        """What was closed since the last time, but for documents that are open again."""
        documents = tuple(uri for uri in self._closed_documents if self._documents.get(uri) is None)
        closing = Closing(documents, tuple(self._closed_folders))
        self._closed_documents.clear()
        self._closed_folders.clear()
        return closing

    async def _next_batch(self) -> list[WorkspaceUpdate]:
        files: dict[str, list[WorkspaceFile]] = {}
        removed: dict[str, list[str]] = {}
        size = 0
        while self._waiting and size < _BATCH_BYTES and sum(map(len, files.values())) < _BATCH_FILES:
            known = next(iter(self._waiting))
            del self._waiting[known]
            text, is_open = await self._text_of(known)
            if text is not None:
                size += len(text)
                self._sent.add(known)
                files.setdefault(known.folder.uri, []).append(WorkspaceFile(known.name, text, is_open))
            elif known in self._sent:
                self._sent.discard(known)
                removed.setdefault(known.folder.uri, []).append(known.name)
        return [
            WorkspaceUpdate(uri, tuple(files.get(uri, ())), tuple(removed.get(uri, ()))) for uri in {**files, **removed}
        ]

    async def _text_of(self, known: _Known) -> tuple[str | None, bool]:
        """A file's text, from the editor if it is open there; None if it is gone or may not be read."""
        if self._folders.folder_of(known.path) != known.folder or self._policy(known.folder).refusal(known.path):
            return None, False
        document = self._documents.get_by_path(known.path)
        if document is not None:
            fit = len(document.lines) <= FILE_BYTES and document.unfit(FILE_BYTES) is None
            return (document.lines.text() if fit else None), True
        return await asyncio.to_thread(_read, known), False

    def _known(self, uri: str) -> _Known | None:
        path = path_of(uri)
        folder = self._folders.folder_of(path) if path else None
        return _Known(folder, path) if folder and path else None

    def _policy(self, folder: Folder) -> FilePolicy:
        return self._policies.setdefault(folder.path, FilePolicy(folder.path))

    def _find(self, folders: Sequence[Folder], near: set[Path], limit: int) -> list[_Known]:
        """Files worth sending, neighbours of open documents first, then the newest; on a thread of its own."""
        found: list[tuple[bool, float, int, _Known]] = []
        for folder in folders:
            for entry in self._walk(folder, limit * _VISITS_FOR_EACH_FILE):
                try:
                    facts = entry.stat()
                except OSError:  # it went while the folders were walked
                    continue
                path = Path(entry.path)
                if facts.st_size <= FILE_BYTES:
                    found.append((path.parent not in near, -facts.st_mtime, facts.st_size, _Known(folder, path)))
        found.sort(key=lambda one: one[:2])
        chosen: list[_Known] = []
        total = 0
        for _, _, size, known in found[:limit]:
            total += size
            if total > TOTAL_BYTES:
                break
            chosen.append(known)
        return chosen

    def _walk(self, folder: Folder, visits: int) -> Iterator[os.DirEntry[str]]:
        """Files below a folder that the policy lets through, nearest first; links are not followed."""
        policy = self._policy(folder)
        queue = [folder.path]
        for current in queue:  # grows while it is walked: breadth first
            if visits <= 0:
                return
            entries = _entries(current, visits)
            visits -= len(entries)
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                path = Path(entry.path)
                if is_noise(path, is_folder=is_folder) or policy.refusal(path, is_folder=is_folder):
                    continue
                if is_folder:
                    queue.append(path)
                elif entry.is_file(follow_symlinks=False):
                    yield entry


def _entries(folder: Path, most: int) -> list[os.DirEntry[str]]:
    """What a folder holds, by name; no more than `most` entries are looked at."""
    try:
        with os.scandir(folder) as entries:
            return sorted(islice(entries, most), key=lambda entry: entry.name)
    except OSError:
        return []


def _read(known: _Known) -> str | None:
    """A text file's content; None if it cannot be read, is too large, binary or not UTF-8."""
    try:
        text = read_inside(known.folder.path, known.path, FILE_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return None if "\0" in text else text
