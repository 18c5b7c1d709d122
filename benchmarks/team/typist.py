"""A typist of benchmarks.team: an editor window that sends what a language server sends, without the server's process.

The pause before a request adapts to the typist as in the language server. While what is typed agrees with what is
shown, nothing is sent.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import aclosing, suppress
from typing import Protocol

import psutil

from benchmarks.typing.assistant import Buffer, Offer, now_s
from benchmarks.typing.scripts import Script
from benchmarks.typing.tally import RequestRecord
from completion.errors import DraftlineError
from completion.request import CompletionEvent, CompletionRequest
from lsp_server.settings.table import Settings
from lsp_server.suggesting.typing_rhythm import TypingRhythm

_PAUSE_S = 0.15  # time after which editors report the position of a cursor
_SETTLED_S = 0.2


class Desk(Protocol):
    """One typist's way to a server."""

    def complete(self, request: CompletionRequest) -> AsyncGenerator[CompletionEvent]:
        """Yield the events of a request. Closing the generator cancels it.

        Raises:
            DraftlineError: The request was refused or failed.
        """

    async def prepare(self, request: CompletionRequest) -> None:
        """Send the request that may follow."""

    async def forget(self, document: str) -> None:
        """Say that a document was closed."""

    async def close(self) -> None:
        """Release the connection."""


class TeamEditor(Buffer):
    """An editor window; see `Assistant`.

    Args:
        name: Name of the typist.
        desk: The way to the server.

    Attributes:
        refusals: Codes of requests that were refused or failed.
    """

    def __init__(self, name: str, desk: Desk) -> None:
        super().__init__()
        self.name = name
        self.refusals: list[str] = []
        self._desk = desk
        self._settings = Settings()
        self._rhythm = TypingRhythm()
        self._ids = itertools.count(1)
        self._script: Script | None = None
        self._document = ""
        self._shown: Offer | None = None
        self._asked: asyncio.Task[None] | None = None
        self._generated = ""
        self._from = 0

    async def start(self) -> None:
        """See `Assistant`: the server runs already."""

    @property
    def processes(self) -> Sequence[psutil.Process]:
        """Return nothing: the server belongs to all typists."""
        return ()

    async def open(self, script: Script) -> None:
        """See `Assistant`."""
        self.load(script)
        self._script, self._document = script, f"file:///team/{next(self._ids)}/{script.path}"

    async def close(self) -> None:
        """See `Assistant`."""
        if self._asked is not None:
            self._asked.cancel()
        self._shown = None
        await self._desk.forget(self._document)

    def move(self, offset: int) -> None:
        """See `Assistant`. The server prepares the new position after a pause."""
        self._shown, self.cursor = None, offset
        self._begin(self._prepare())

    def edit(self, start: int, deleted: int, inserted: str, behind: str = "") -> None:
        """See `Assistant`."""
        gone = self.text[start : start + deleted]
        typed_on = start == self.cursor and gone in ("", inserted)
        self.apply(start, deleted, inserted, behind)
        self._shown = self._shown.narrowed(inserted, gone, behind) if self._shown is not None and typed_on else None
        if not typed_on or not self._generated.startswith(self.text[self._from : self.cursor]):
            self._generated = ""

    def ask(self, expected: str | None) -> None:
        """See `Assistant`. What is shown or still generated answers without a request."""
        self._rhythm.key(now_s())
        goes_on = self._generated and self._asked is not None and not self._asked.done()
        if self._shown is None and not goes_on:
            self._begin(self._request(expected))

    def offer(self) -> Offer | None:
        """See `Assistant`."""
        return self._shown

    def accept(self, offer: Offer, length: int) -> None:
        """See `Assistant`."""
        replaced = offer.replaced if length >= len(offer.text) else ""
        self.apply(self.cursor, len(replaced), offer.text[:length])
        self._shown, self._generated = offer.narrowed(offer.text[:length]), ""

    async def settle(self) -> None:
        """See `Assistant`."""
        if self._asked is not None:
            await asyncio.wait({self._asked})
        await asyncio.sleep(_SETTLED_S)
        for request in self.requests:
            request.end(now_s())

    async def stop(self) -> None:
        """See `Assistant`."""
        await self._desk.close()

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        """Start work in place of the request that runs, which is cancelled."""
        if self._asked is not None:
            self._asked.cancel()
        self._asked = asyncio.create_task(work)

    def _wanted(self) -> CompletionRequest:
        assert self._script is not None, "a file is open"
        return CompletionRequest(
            self.text[: self.cursor],
            self.text[self.cursor :],
            self._script.language,
            self._script.path,
            document=self._document,
            suggestions=self._settings.suggestions,
            max_tokens=self._settings.max_tokens,
        )

    async def _prepare(self) -> None:
        await asyncio.sleep(_PAUSE_S)
        with suppress(DraftlineError):  # as the language server: the next request says what is wrong
            await self._desk.prepare(self._wanted())

    async def _request(self, expected: str | None) -> None:
        self._generated = ""
        await asyncio.sleep(self._rhythm.wait_s(self._settings.debounce_ms / 1000))
        self._from = self.cursor
        record = RequestRecord(now_s(), expected)
        self.requests.append(record)
        try:
            async with aclosing(self._desk.complete(self._wanted())) as events:
                async for event in events:
                    self._came(event, record)
            record.refuse(now_s())
        except DraftlineError as error:
            self.refusals.append(error.code)
            record.refuse(now_s())
        finally:
            record.end(now_s())

    def _came(self, event: CompletionEvent, record: RequestRecord) -> None:
        """Show the first suggestion of an event, less what was typed since the request."""
        if event.done and event.statistics is not None:
            record.computed_tokens = event.statistics.computed_tokens
        if not event.suggestions:
            return
        if record.first_text_s is None:
            self._rhythm.answered(now_s() - record.asked_s)
        first, typed = event.suggestions[0], self.text[self._from : self.cursor]
        replaced = self.text[self.cursor : self.cursor + first.replace_after]
        self._generated = first.text
        record.came(now_s(), first.text, replaced, done=event.done)
        since_s = self._shown.since_s if self._shown is not None else now_s()
        offer = Offer(self._document, first.text, replaced, since_s)
        self._shown = offer.narrowed(typed) if typed else offer
