"""One answer of the engine, running or finished, and what of it is left after the user typed on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, replace
from typing import Protocol

from completion.errors import DraftlineError, EngineUnavailableError
from completion.request import CompletionEvent, CompletionRequest, Suggestion

_log = logging.getLogger(__name__)

CLOSERS = frozenset(")]}>\"'`")
"""Characters that editors add by themselves after the cursor when their opener is typed."""

REST_S = 0.3
"""Alternatives are written for who has stopped to look: so long after the first text and the last key."""

MOST_CLOSERS = 3
"""How many closers an editor is expected to add or step over between two requests."""


class CompletionSource(Protocol):
    """The part of the engine's client that a generation needs."""

    def complete(self, request: CompletionRequest) -> AsyncGenerator[CompletionEvent, None]:
        """Stream cumulative events; closing the iterator cancels."""


@dataclass(frozen=True, slots=True)
class Situation:
    """The text around a cursor, whole, with line ends as the document has them."""

    prefix: str
    suffix: str


@dataclass(frozen=True, slots=True)
class Remainder:
    """What of a suggestion is left to insert at a situation's cursor.

    Attributes:
        index: Which suggestion of the generation.
        text: What to insert there.
        replace_after: How many code points after that cursor it replaces.
    """

    index: int
    text: str
    replace_after: int


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
        typed = _typed_since(self.start, now)
        if typed is None:
            return None
        if self.last is None:
            return () if self.running else None
        whole = self.last.whole if self.running else len(self.last.suggestions)
        left = [
            self._remainder(index, suggestion, typed, now, grows=index >= whole)
            for index, suggestion in enumerate(self.last.suggestions)
        ]
        fitting = tuple(one for one in left if one is not None)
        return fitting if fitting or (self.running and not self.last.suggestions) else None

    def _remainder(
        self, index: int, suggestion: Suggestion, typed: str, now: Situation, *, grows: bool
    ) -> Remainder | None:
        if not suggestion.text.startswith(typed):
            catching_up = grows and typed.startswith(suggestion.text)
            return Remainder(index, "", 0) if catching_up else None
        text = suggestion.text[len(typed) :]
        if not text and not grows:
            return None
        replaced = _replaced(self.start, now, suggestion.replace_after, text)
        return None if replaced is None else Remainder(index, text, replaced)

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


def _typed_since(start: Situation, now: Situation) -> str | None:
    """What was typed since the start; None if anything else changed."""
    if not now.prefix.startswith(start.prefix) or _closer_difference(start, now) is None:
        return None
    return now.prefix[len(start.prefix) :]


def _closer_difference(start: Situation, now: Situation) -> int | None:
    """How many closers the editor added after the cursor (> 0) or stepped over (< 0); None: another change."""
    added = len(now.suffix) - len(start.suffix)
    if abs(added) > MOST_CLOSERS:
        return None
    longer, shorter = (now.suffix, start.suffix) if added >= 0 else (start.suffix, now.suffix)
    head = longer[: abs(added)]
    return added if longer.endswith(shorter) and CLOSERS.issuperset(head) else None


def _replaced(start: Situation, now: Situation, replace_after: int, text: str) -> int | None:
    """Code points after the cursor that `text` takes the place of; None if it would double a closer.

    A closer that the editor added counts as replaced once the text closes it itself.
    """
    difference = _closer_difference(start, now) or 0
    if difference <= 0:
        return replace_after + difference if replace_after + difference >= 0 else None
    closed, at = 0, -1
    for closer in now.suffix[:difference]:
        at = text.find(closer, at + 1)
        if at < 0:
            return closed
        closed += 1
    return replace_after + closed
