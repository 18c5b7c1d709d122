"""One stream of the engine, running or finished, kept while the user's typing agrees with it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from typing import Protocol

from completion.errors import DraftlineError, EngineUnavailableError
from completion.request import CompletionEvent, CompletionRequest
from lsp_server.suggesting.narrowing import Remainder, Situation, remainder, typed_since

_log = logging.getLogger(__name__)

REST_S = 0.3
"""Alternatives are written for who has stopped to look: so long after the first text and the last key."""


class CompletionSource(Protocol):
    """The part of the engine's client that a generation needs."""

    def complete(self, request: CompletionRequest) -> AsyncGenerator[CompletionEvent, None]:
        """Stream cumulative events; closing the iterator cancels."""


class Generation:
    """A stream of the engine, kept while the user's typing agrees with it.

    Attributes:
        id: Names the completion in every message to and from the client.
        start: Where it was asked for.
        wanted: How many suggestions were asked for.
        last: The newest event, None before the first.
        error: Why it failed, None if it did not.
        cancelled: Whether it was stopped before the engine was done.
        started_s: When the engine was asked, by the completer's clock.
        first_text_s: When the first text came, None before.
        held_back: Whether its text is not shown: the engine is not asked for others beside it.
        is_streamed: Whether the client hears of what comes behind its answer; if not, others are written once it asks
            for all.
    """

    def __init__(
        self, id_: str, start: Situation, wanted: int = 1, started_s: float = 0.0, *, is_streamed: bool = True
    ) -> None:
        self.id = id_
        self.start = start
        self.wanted = wanted
        self.last: CompletionEvent | None = None
        self.error: DraftlineError | None = None
        self.cancelled = False
        self.started_s = started_s
        self.first_text_s: float | None = None
        self.held_back = False
        self.is_streamed = is_streamed
        self._asked_again = asyncio.Event()
        self._all_wanted = asyncio.Event()
        self._whole = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()

    @property
    def running(self) -> bool:
        """Whether text may still come."""
        return not self._ended.is_set()

    @property
    def has_text(self) -> bool:
        """Whether anything was said yet."""
        return self.last is not None and any(suggestion.text for suggestion in self.last.suggestions)

    def run(self, source: CompletionSource, request: CompletionRequest, on_event: Callable[[Generation], None]) -> None:
        """Start reading the engine's stream; `on_event` is called after every event."""
        self._task = asyncio.create_task(self._read(source, request, on_event))

    def asked_again(self, *, for_all: bool) -> None:
        """The user typed on, and what is left of the text serves that, too; or all suggestions are wanted now."""
        self._asked_again.set()
        if for_all:
            self._all_wanted.set()

    def cancel(self) -> None:
        """Stop it; closing the stream is what tells the engine."""
        self.cancelled = self.cancelled or self.running
        self._end()
        if self._task is not None:
            self._task.cancel()

    async def first_whole(self) -> None:
        """Wait until the first suggestion is complete, or nothing more comes."""
        await self._whole.wait()

    @property
    def is_first_whole(self) -> bool:
        """Whether the first suggestion is complete."""
        return self.last is not None and (self.last.done or self.last.whole > 0)

    @property
    def is_settled(self) -> bool:
        """Whether none of its texts grows any more; others may follow."""
        return not self.running or (self.last is not None and 0 < len(self.last.suggestions) <= self.last.whole)

    async def ended(self) -> None:
        """Wait until it is done, failed or cancelled."""
        await self._ended.wait()

    def _end(self) -> None:
        self._whole.set()
        self._ended.set()

    def remainders(self, now: Situation) -> tuple[Remainder, ...] | None:
        """What is left at another cursor; empty while the text is yet to come, None if it no longer fits there."""
        typed = typed_since(self.start, now)
        if typed is None:
            return None
        if self.last is None:
            return () if self.running else None
        whole = self.last.whole if self.running else len(self.last.suggestions)
        left = [
            remainder(index, suggestion, self.start, now, typed, grows=index >= whole)
            for index, suggestion in enumerate(self.last.suggestions)
        ]
        fitting = tuple(one for one in left if one is not None)
        return fitting if fitting or (self.running and not self.last.suggestions) else None

    async def _read(
        self, source: CompletionSource, request: CompletionRequest, on_event: Callable[[Generation], None]
    ) -> None:
        waits = request.suggestions > 1 and not request.invoked
        try:
            first = replace(request, suggestions=1) if waits else request
            await self._listen(source.complete(first), on_event, is_last=not waits)
            if waits and self.running:
                await self._rest()
                await self._add_alternatives(source, request, on_event)
        except DraftlineError as error:
            self.error = error
            _log.warning("The engine failed: %s", error)
        finally:
            if not (self.cancelled or self.error or (self.last and self.last.done)):
                self.error = EngineUnavailableError("The engine's stream ended before the completion was done.")
            self._end()

    async def _listen(
        self, stream: AsyncGenerator[CompletionEvent], on_event: Callable[[Generation], None], *, is_last: bool
    ) -> None:
        """Note each event. Where the stream is not the last one, its end is when the first text is complete."""
        async with contextlib.aclosing(stream) as events:
            async for event in events:
                others_follow = event.done and bool(event.suggestions) and not is_last
                self.last = replace(event, done=False, whole=1) if others_follow else event
                if self.last.done:
                    self._end()
                elif self.last.whole:
                    self._whole.set()
                on_event(self)
                if event.done:
                    return

    async def _rest(self) -> None:
        """Wait until nobody has typed for a while beside what is shown, or somebody asks for all suggestions."""
        while not self._all_wanted.is_set():
            self._asked_again.clear()
            rest_s = REST_S if self.is_streamed and not self.held_back else None
            try:
                await asyncio.wait_for(self._asked_again.wait(), rest_s)
            except TimeoutError:
                break

    async def _add_alternatives(
        self, source: CompletionSource, request: CompletionRequest, on_event: Callable[[Generation], None]
    ) -> None:
        """Ask for the same with alternatives. The text that is there stays the first; without an engine, the only."""
        if self.last is None:
            return
        shown = known = self.last
        try:
            async with contextlib.aclosing(source.complete(request)) as events:
                async for event in events:
                    if event.whole > 1 and event.suggestions[0].text == shown.suggestions[0].text:
                        known = replace(event, statistics=shown.statistics)
                    if event.done:
                        break
                    if self.last is not known:
                        self.last = known
                        on_event(self)
        except DraftlineError as error:
            _log.warning("The engine failed at the alternatives: %s", error)
        self.last = replace(known, done=True)
        self._end()
        on_event(self)
