"""The client of an engine host: sends the messages of a session, and repeats a request whose host died."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Collection, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TypeVar

from completion.edits import NextEditRequest, NextEdits, changed_span
from completion.errors import CancelledError, DraftlineError, EngineUnavailableError
from completion.host.errors import StaleTextError
from completion.host.open_texts import ShortUpdate, WorkspaceEdit, text_sum
from completion.request import Closing, CompletionEvent, CompletionRequest, WorkspaceFile, WorkspaceUpdate
from lsp_server.engine.connector import HostConnector

_Ordered = TypeVar("_Ordered", CompletionRequest, NextEditRequest)


class SentTexts:
    """The texts of open files as they were sent last, so that only what changed in one is sent."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str], str] = {}  # by workspace and path

    def forget(self, workspaces: Collection[str]) -> None:
        """Send whole texts of workspaces from now on: they are closed, or the host may not have got the last ones."""
        self._texts = {key: text for key, text in self._texts.items() if key[0] not in workspaces}

    def shortened(self, update: WorkspaceUpdate) -> ShortUpdate:
        """Return an update with an edit in the place of each open file that was sent before, and note what is sent."""
        whole: list[WorkspaceFile] = []
        edited: list[WorkspaceEdit] = []
        for path in (*update.removed, *(file.path for file in update.changed if not file.open)):
            self._texts.pop((update.workspace, path), None)
        for file in update.changed:
            known = self._texts.get((update.workspace, file.path))
            if known is None:
                whole.append(file)
            else:
                start, end, new_end = changed_span(known, file.text)
                edited.append(WorkspaceEdit(file.path, start, end, file.text[start:new_end], text_sum(file.text)))
            if file.open:
                self._texts[update.workspace, file.path] = file.text
        return ShortUpdate(update.workspace, tuple(whole), update.removed, tuple(edited))


@dataclass(eq=False)
class EngineClient(HostConnector):
    """A client of one host, to which it connects at the first request.

    Its methods raise DraftlineError if no host is available or answers, or if it refuses the message.
    """

    _sent: SentTexts = field(default_factory=SentTexts)
    _heard: set[str] = field(default_factory=set)  # keys of what was sent: a host elsewhere hears of no other file
    _running: int = 0
    _idle: asyncio.Event = field(default_factory=asyncio.Event)
    _orders: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    async def complete(self, request: CompletionRequest) -> AsyncGenerator[CompletionEvent]:
        """Yield the events of a request. Closing the iterator cancels it within one model step.

        If the host dies before the first suggestion, the request is sent once more; later the stream just ends.

        Raises:
            DocumentRefusedError: Two hosts ended on this document.
            DraftlineError: No host is available, or the request failed.
        """
        self._running += 1
        self._idle.clear()
        try:
            async for event in self._events(self._numbered(request)):
                yield event
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()

    async def _events(self, request: CompletionRequest) -> AsyncGenerator[CompletionEvent]:
        shown = False
        for attempt in (1, 2):
            await self.connect()
            connection = self.live()
            try:
                async with self.watched(), aclosing(connection.complete(request)) as events:
                    async for event in events:
                        shown = shown or bool(event.suggestions)
                        yield event
            except (EngineUnavailableError, CancelledError):  # a host that stops cancels its requests
                await self.drop(connection)
                if shown:
                    return
                if attempt == 2:
                    raise
            else:
                return

    async def next_edits(self, request: NextEditRequest) -> NextEdits:
        """Return what the user's last edits imply for the rest of a document, nothing while the host is not ready."""
        if self.status.state != "ready":
            return NextEdits()
        async with self.watched():
            return await self.live().next_edits(self._numbered(request))

    async def prepare(self, request: CompletionRequest) -> None:
        """Bring the host's cache up to date for a request that may follow. Do nothing while the host is not ready."""
        await self._post_if_ready("/v1/prepare", self._numbered(request))

    async def update_workspace(self, update: WorkspaceUpdate) -> None:
        """Send changes of a workspace. A restarted host needs the whole workspace again."""
        self._heard.add(update.workspace)
        await self.connect()
        async with self.watched():
            try:
                await self.live().post("/v1/workspace", self._sent.shortened(update))
            except DraftlineError as error:
                self._sent.forget([update.workspace])
                if error.code != StaleTextError.code:
                    raise
                await self.live().post("/v1/workspace", self._sent.shortened(update))

    async def forget(self, closing: Closing) -> None:
        """Send the documents and workspaces that are no longer used, if the host is ready and has heard of them."""
        self._sent.forget(closing.workspaces)
        keys = closing.documents, closing.workspaces
        documents, workspaces = (tuple(self._heard.intersection(each)) for each in keys)
        if documents or workspaces:
            await self._post_if_ready("/v1/close", Closing(documents, workspaces))

    async def _post_if_ready(self, path: str, message: CompletionRequest | Closing) -> None:
        if self.status.state == "ready":
            async with self.watched():
                await self.live().post(path, message)

    async def retire(self) -> None:
        """Close the connection once the completions that run have ended."""
        if self._running:
            await self._idle.wait()
        await self.close()

    def _numbered(self, request: _Ordered) -> _Ordered:
        """Note a request's keys; return it with its place in an editor's order: other connections may be late."""
        self._heard.update((request.document, getattr(request, "workspace", "")))
        return replace(request, order=next(self._orders)) if self.options.is_editor else request
