"""draftline in benchmarks.typing: an editor that speaks to the real language server over stdio."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
from lsprotocol import types

from benchmarks.engine_processes import engine_processes, private_folders
from benchmarks.language_client import REPOSITORY, ServerProcess
from benchmarks.typing.assistant import Buffer, Offer, now_s
from benchmarks.typing.scripts import Script
from benchmarks.typing.tally import RequestRecord
from lsp_server.messages import (
    ACCEPTED_COMMAND,
    DID_ACCEPT_PARTLY,
    DID_MOVE_CURSOR,
    DID_REJECT,
    DID_SHOW,
)

_SHOWN_S = 0.75  # time on the screen after which editors report a suggestion as shown
_PAUSE_S = 0.15  # time after which editors report the position of a cursor
_SETTLED_S = 0.2
_LONGEST_SETTLING_S = 60.0


@dataclass(slots=True)
class _Asked:
    """The newest request.

    Attributes:
        version: Version of the document in which it was sent.
        answered: Set when the answer is there.
        record: Its record, None once text has come or if a suggestion was on the screen already.
    """

    id: str
    version: int
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    record: RequestRecord | None = None


class DraftlineEditor(Buffer):
    """One editor window with a language server and an engine host of its own.

    Args:
        name: Name of the row.
        options: Settings of the server that differ from its defaults.
        checkout: Folder of the server's code.
    """

    def __init__(self, name: str, options: Mapping[str, Any], checkout: Path = REPOSITORY) -> None:
        super().__init__()
        self.name = name
        self._server = ServerProcess(options, self._on_partial, checkout)
        self._running = AsyncExitStack()
        self._environment: dict[str, str] = {}
        self._client = self._server.client
        self._ids = itertools.count(1)
        self._uri = ""
        self._version = 0
        self._asked: _Asked | None = None
        self._failure: BaseException | None = None
        self._shown: Offer | None = None
        self._shown_record: RequestRecord | None = None
        self._shown_from = 0
        self._has_accepted = False
        self._reported = ""
        self._received: dict[str, int] = {}
        self._pause: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Start the server and wait until its engine is ready."""
        self._environment = self._running.enter_context(private_folders())
        await self._server.start(self._environment)
        self._running.push_async_callback(self._server.stop)
        await self._server.wait_for_engine()

    @property
    def processes(self) -> Sequence[psutil.Process]:
        """Return the language server and the processes of its engine."""
        server = self._server.process
        return [*([server] if server is not None else []), *engine_processes(self._environment)]

    @property
    def socket_path(self) -> Path:
        """Return the socket of the engine of this editor."""
        return next(Path(self._environment["DRAFTLINE_RUNTIME_DIR"]).glob("*.sock"))

    async def open(self, script: Script) -> None:
        """See `Assistant`."""
        self.load(script)
        self._uri, self._version = f"file:///typing/{next(self._ids)}/{quote(script.path) or 'untitled'}", 1
        item = types.TextDocumentItem(self._uri, script.language, self._version, script.text)
        self._client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    async def close(self) -> None:
        """See `Assistant`."""
        document = types.TextDocumentIdentifier(self._uri)
        self._client.text_document_did_close(types.DidCloseTextDocumentParams(document))
        self._asked = self._shown = None

    def move(self, offset: int) -> None:
        """See `Assistant`. The server gets the new position after a pause."""
        self._take_away("cursorMoved")
        self._cancel_asked()
        self.cursor = offset
        self._pause = asyncio.get_running_loop().call_later(_PAUSE_S, self._report_cursor)

    def edit(self, start: int, deleted: int, inserted: str, behind: str = "") -> None:
        """See `Assistant`."""
        if self._pause is not None:
            self._pause.cancel()
        range_ = types.Range(self._position(start), self._position(start + deleted))
        gone = self.text[start : start + deleted]
        typed_on = start == self.cursor and gone in ("", inserted)
        self.apply(start, deleted, inserted, behind)
        self._version += 1
        self._client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(self._version, self._uri),
                [types.TextDocumentContentChangePartial(range_, inserted + behind)],
            )
        )
        if self._shown is not None and typed_on and self._shown.text == inserted:
            self._end_shown()
        elif self._shown is not None:
            agrees = typed_on and self._shown.text.startswith(inserted)
            if not agrees:
                self._take_away("typedOver")
            # A text without the closer that the editor has added is hidden until the server says what it replaces.
            self._shown = self._shown.narrowed(inserted, gone, behind) if self._shown is not None else None

    def ask(self, expected: str | None) -> None:
        """See `Assistant`. Cancels the older request, as VS Code does."""
        self._cancel_asked()
        record = None
        if self._shown is None:
            record = RequestRecord(now_s(), expected, follows=self._has_accepted)
            self.requests.append(record)
        self._has_accepted = False
        asked = self._asked = _Asked(str(next(self._ids)), self._version, record=record)
        params = types.InlineCompletionParams(
            types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic),
            types.TextDocumentIdentifier(self._uri),
            self._position(self.cursor),
        )
        future = self._client.protocol.send_request(types.TEXT_DOCUMENT_INLINE_COMPLETION, params, msg_id=asked.id)
        future.add_done_callback(lambda done: self._on_answer(asked, done))

    def offer(self) -> Offer | None:
        """See `Assistant`."""
        shown = self._shown
        if shown is not None and shown.id != self._reported and now_s() - shown.since_s >= _SHOWN_S:
            self._reported = shown.id
            self._client.protocol.notify(DID_SHOW, {"item": self._item(shown)})
        return shown

    def accept(self, offer: Offer, length: int) -> None:
        """See `Assistant`."""
        whole = length >= len(offer.text)
        if whole:
            self._end_shown()
        self.edit(self.cursor, len(offer.replaced) if whole else 0, offer.text[:length])
        if whole:
            params = types.ExecuteCommandParams(ACCEPTED_COMMAND, arguments=[offer.id, 0])
            self._client.protocol.send_request(types.WORKSPACE_EXECUTE_COMMAND, params)
            self._has_accepted = True
        else:
            units = len(offer.text[:length].encode("utf-16-le")) // 2
            self._client.protocol.notify(DID_ACCEPT_PARTLY, {"item": self._item(offer), "acceptedLength": units})

    async def settle(self) -> None:
        """Wait until the last request is answered and no more text comes.

        Raises:
            JsonRpcException: A request was answered with an error.
            SystemExit: The server or its engine has ended.
        """
        if self._asked is not None:
            await asyncio.wait_for(self._asked.answered.wait(), _LONGEST_SETTLING_S)
        if self._failure is not None:
            raise self._failure
        await asyncio.sleep(_SETTLED_S)
        self._server.check()
        for request in self.requests:
            request.end(now_s())
        self.received_characters, self._received = sum(self._received.values()), {}

    async def stop(self) -> None:
        """See `Assistant`."""
        await self._running.aclose()

    def _on_partial(self, params: Any) -> None:  # noqa: ANN401 - our own message has no type
        asked = self._asked
        if asked is None or params.uri != self._uri or params.version != asked.version or not params.items:
            return
        first = params.items[0]
        end = self._offset(first.range.end.line, first.range.end.character)
        self._show(asked, params.id, first.insertText, end, done=params.done)

    def _on_answer(self, asked: _Asked, done: Future[types.InlineCompletionList]) -> None:
        asked.answered.set()
        if asked is not self._asked or done.cancelled():
            return
        error = done.exception()
        if error is not None:
            self._failure = error
            return
        items = done.result().items
        if not items:
            self._end_shown()
            if asked.record is not None:
                asked.record.refuse(now_s())
            return
        first = items[0]
        assert first.command is not None, "each item of the server has a command"
        assert first.command.arguments is not None, "the command names the suggestion"
        assert first.range is not None, "each item of the server has a range"
        end = self._offset(first.range.end.line, first.range.end.character)
        self._show(asked, str(first.command.arguments[0]), str(first.insert_text), end, done=True)

    def _show(self, asked: _Asked, id_: str, text: str, end: int, *, done: bool) -> None:
        """Put a suggestion on the screen and into the record of its request."""
        replaced = self.text[self.cursor : end]
        before = self._shown
        since_s = before.since_s if before is not None and before.id == id_ else now_s()
        if asked.record is not None:
            self._shown_record, self._shown_from, asked.record = asked.record, self.cursor, None
        self._shown = Offer(id_, text, replaced, since_s)
        self._received[id_] = max(self._received.get(id_, 0), len(text))
        if self._shown_record is not None:
            typed = self.text[self._shown_from : self.cursor]
            self._shown_record.came(now_s(), typed + text, replaced, done=done)

    def _end_shown(self) -> None:
        """Remove the suggestion from the screen after it was used."""
        if self._shown_record is not None:
            self._shown_record.end(now_s())
        self._shown = self._shown_record = None

    def _take_away(self, reason: str) -> None:
        """Remove the suggestion from the screen and report the reason to the server."""
        if self._shown is not None:
            self._client.protocol.notify(DID_REJECT, {"id": self._shown.id, "reason": reason})
            if self._shown_record is not None:
                self._shown_record.end(now_s(), contradicted=reason == "typedOver")
        self._shown = self._shown_record = None

    def _cancel_asked(self) -> None:
        asked = self._asked
        if asked is None:
            return
        if asked.record is not None:
            asked.record.end(now_s())
        if not asked.answered.is_set():
            self._client.cancel_request(types.CancelParams(asked.id))
        self._asked = None

    def _report_cursor(self) -> None:
        position = self._position(self.cursor)
        params = {"uri": self._uri, "position": {"line": position.line, "character": position.character}}
        self._client.protocol.notify(DID_MOVE_CURSOR, params)

    def _item(self, offer: Offer) -> dict[str, Any]:
        return {"command": {"title": "", "command": ACCEPTED_COMMAND, "arguments": [offer.id, 0]}}

    def _position(self, offset: int) -> types.Position:
        before = self.text[:offset]
        return types.Position(before.count("\n"), len(before) - before.rfind("\n") - 1)

    def _offset(self, line: int, character: int) -> int:
        start = 0
        for _ in range(line):
            start = self.text.index("\n", start) + 1
        return start + character
