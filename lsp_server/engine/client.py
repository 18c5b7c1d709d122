"""The client of an engine host: sends the messages of a session, and repeats a request whose host died."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TypeVar

from completion.edits import NextEditRequest, NextEdits
from completion.errors import CancelledError, DraftlineError, EngineUnavailableError
from completion.host.errors import StaleTextError
from completion.request import Closing, CompletionEvent, CompletionRequest, WorkspaceUpdate
from lsp_server.engine.connector import HostConnector
from lsp_server.engine.sent_texts import SentTexts

_Ordered = TypeVar("_Ordered", CompletionRequest, NextEditRequest)


@dataclass(eq=False)
class EngineClient(HostConnector):
    """A client of one host, to which it connects at the first request."""

    _sent: SentTexts = field(default_factory=SentTexts)
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
        """Return what the user's last edits imply for the rest of a document, nothing while the host is not ready.

        Raises:
            DraftlineError: The host refuses the request or does not answer.
        """
        if self.status.state != "ready":
            return NextEdits()
        async with self.watched():
            return await self.live().next_edits(self._numbered(request))

    async def prepare(self, request: CompletionRequest) -> None:
        """Bring the host's cache up to date for a request that may follow. Do nothing while the host is not ready.

        Raises:
            DraftlineError: The host refuses the preparation or does not answer.
        """
        if self.status.state == "ready":
            async with self.watched():
                await self.live().post("/v1/prepare", self._numbered(request))

    async def update_workspace(self, update: WorkspaceUpdate) -> None:
        """Send changes of a workspace. A restarted host needs the whole workspace again.

        Raises:
            DraftlineError: No host is available, or it refuses the update.
        """
        await self.connect()
        async with self.watched():
            try:
                await self.live().post("/v1/workspace", self._sent.shortened(update))
            except DraftlineError as error:
                self._sent.forget()
                if error.code != StaleTextError.code:
                    raise
                await self.live().post("/v1/workspace", self._sent.shortened(update))

    async def forget(self, closing: Closing) -> None:
        """Send the documents and workspaces that are no longer used. Do nothing unless the host is ready.

        Raises:
            DraftlineError: The host refuses the message or does not answer.
        """
        if self.status.state == "ready":
            async with self.watched():
                await self.live().post("/v1/close", closing)

    async def retire(self) -> None:
        """Close the connection once the completions that run have ended."""
        if self._running:
            await self._idle.wait()
        await self.close()

    def _numbered(self, request: _Ordered) -> _Ordered:
        """Return a request with its place in the order of an editor's ones: one over another connection may be late."""
        return replace(request, order=next(self._orders)) if self.options.is_editor else request
