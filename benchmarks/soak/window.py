"""One editor window of the week: a language server with some workspaces, in which real code is typed."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from lsprotocol import types

from benchmarks.language_client import ServerProcess
from lsp_server.messages import DID_REJECT, DID_SHOW

_AUTOMATIC = types.InlineCompletionTriggerKind.Automatic
_INVOKED = types.InlineCompletionTriggerKind.Invoked
_ANSWER_S = 60.0
_KEYS_BETWEEN_ANSWERS = 25
_MOST_OPEN = 8


@dataclass(slots=True)
class _Document:
    """An open document: where its next line is typed."""

    uri: str
    lines: list[str]
    version: int = 1


class Window:
    """A server process, and somebody who types in it."""

    def __init__(self, server: ServerProcess, folders: list[Path], chance: random.Random) -> None:
        self._server = server
        self._client = server.client
        self._folders = folders
        self._chance = chance
        self._open: list[_Document] = []
        self.keys = 0

    @classmethod
    async def open(
        cls, environment: Mapping[str, str], folders: list[Path], settings: Mapping[str, Any], chance: random.Random
    ) -> Self:
        """Return a window whose engine is ready."""
        server = ServerProcess({"debounceMs": 0, "quietMs": 0, "gate": "off", **settings})
        async with AsyncExitStack() as stack:
            await server.start(environment)
            stack.push_async_callback(server.stop)
            await server.wait_for_engine()
            stack.pop_all()
        added = [types.WorkspaceFolder(folder.as_uri(), folder.name) for folder in folders]
        event = types.WorkspaceFoldersChangeEvent(added=added, removed=[])
        server.client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(event))
        return cls(server, folders, chance)

    async def type_line(self) -> list[float]:
        """Type a line of a document once more and take it back; gives the seconds that answers took.

        Every key is followed by a request, as in editors; most of them are taken over by the next key's.
        """
        document = self._document()
        number = self._chance.randrange(len(document.lines))
        waits: list[float] = []
        asked: list[asyncio.Future[types.InlineCompletionList]] = []
        self._change(document, (number, 0), (number, 0), "\n")
        for typed, character in enumerate(document.lines[number]):
            self._change(document, (number, typed), (number, typed), character)
            asked.append(asyncio.ensure_future(self._ask(document, number, typed + 1, _AUTOMATIC)))
            self.keys += 1
            if self.keys % _KEYS_BETWEEN_ANSWERS == 0:
                started = time.perf_counter()
                answer = await asyncio.wait_for(self._ask(document, number, typed + 1, _INVOKED), _ANSWER_S)
                waits.append(time.perf_counter() - started)
                self._note_fate(answer.items)
        await asyncio.wait_for(asyncio.gather(*asked), _ANSWER_S)
        self._server.check()
        self._change(document, (number, 0), (number + 1, 0), "")  # documents keep their length all week
        return waits

    @property
    def resident_bytes(self) -> int:
        """Of the server's process."""
        process = self._server.process
        return int(process.memory_info().rss) if process is not None else 0

    async def close(self) -> bool:
        """Shut down as an editor does; whether the server ended."""
        process = self._server.process
        await self._server.stop()
        return process is None or not process.is_running()

    def _document(self) -> _Document:
        """Return one that is open, or a new one; the oldest is closed where too many are open."""
        if self._open and self._chance.random() < 0.8:
            return self._chance.choice(self._open)
        path = self._chance.choice(sorted(self._chance.choice(self._folders).glob("*.py")))
        known = next((one for one in self._open if one.uri == path.as_uri()), None)
        if known is not None:
            return known
        text = path.read_text(encoding="utf-8")
        item = types.TextDocumentItem(path.as_uri(), "python", 1, text)
        self._client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        self._open.append(_Document(path.as_uri(), [line for line in text.split("\n") if line.strip()]))
        if len(self._open) > _MOST_OPEN:
            closed = types.TextDocumentIdentifier(self._open.pop(0).uri)
            self._client.text_document_did_close(types.DidCloseTextDocumentParams(closed))
        return self._open[-1]

    def _change(self, document: _Document, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        document.version += 1
        named = types.VersionedTextDocumentIdentifier(document.version, document.uri)
        range_ = types.Range(types.Position(*start), types.Position(*end))
        change = types.TextDocumentContentChangePartial(range_, text)
        self._client.text_document_did_change(types.DidChangeTextDocumentParams(named, [change]))

    async def _ask(
        self, document: _Document, line: int, character: int, kind: types.InlineCompletionTriggerKind
    ) -> types.InlineCompletionList:
        answer = await self._client.text_document_inline_completion_async(
            types.InlineCompletionParams(
                types.InlineCompletionContext(kind),
                types.TextDocumentIdentifier(document.uri),
                types.Position(line, character),
            )
        )
        return answer if isinstance(answer, types.InlineCompletionList) else types.InlineCompletionList([])

    def _note_fate(self, items: Sequence[types.InlineCompletionItem]) -> None:
        """Some suggestions are shown, some rejected, as on a working day."""
        if not items or items[0].command is None or not items[0].command.arguments:
            return
        arguments = list(items[0].command.arguments)
        if self._chance.random() < 0.5:
            command = {"command": items[0].command.command, "arguments": arguments}
            self._client.protocol.notify(DID_SHOW, {"item": {"command": command}})
        else:
            self._client.protocol.notify(DID_REJECT, {"id": arguments[0], "reason": "typedOver"})
