"""One completion that the engine generates, kept as long as the user types what it suggests."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from completion.errors import DraftlineError, EngineUnavailableError
from completion.request import CompletionEvent, CompletionRequest, StopReason, Suggestion
from lsp_server.gate.worth import may_show_more, worthwhile_end
from lsp_server.suggesting.narrowing import Remainder, Situation, opens_pair, remainder, shortened, typed_since

if TYPE_CHECKING:
    from lsp_server.suggesting.acceptance_gate import Passed
    from lsp_server.suggesting.query import Query

_log = logging.getLogger(__name__)

PAUSE_S = 0.3
"""Pause in typing after which an automatic suggestion gets alternatives, in seconds: the user may be reading it."""


class CompletionSource(Protocol):
    """The part of the engine client that a generation uses."""

    def complete(self, request: CompletionRequest) -> AsyncGenerator[CompletionEvent, None]:
        """Yield cumulative events. Closing the generator cancels the request."""


@dataclass(eq=False)
class Generation:
    """A completion that the engine generates or has generated, kept as long as the user types what it suggests.

    Attributes:
        start: The text around the cursor at the request.
        last: The newest event of the engine, None before the first.
        error: Why it failed, None if it did not.
        cancelled: Whether it was stopped before the engine was done.
        started_s: Time of the request to the engine, by the completer's clock.
        first_text_s: Time of the first text, None before it.
        hidden: Whether the gate hides it. Then alternatives are generated only for a manual request.
        passed: What the gate may learn from it, None until it passed.
        is_visible: Whether the client has received a part of it.
        max_lines: Maximum number of its lines, 0 for no bound.
        answerable: Set while the first suggestion can be the answer, or the generation has ended.
        ended: Set once the generation is done, failed or cancelled.
        follows: Id of the suggestion whose acceptance it was generated in advance for; "" for a request's generation.
        streamed: The latest of it that was streamed: for which query, what, whether that is complete; None at first.
        is_streamed: Whether the client gets more after its answer. If not, only manual requests make alternatives, and
            the first line of a block that grows is an answer.
        shows_start: Whether the answer has of the first suggestion only what is probably right.
        when_complete: Called once the first suggestion is complete, if it was not at the answer.
    """

    id: str
    start: Situation
    wanted: int = 1
    is_streamed: bool = True
    shows_start: bool = False
    last: CompletionEvent | None = None
    error: DraftlineError | None = None
    cancelled: bool = False
    started_s: float = 0.0
    first_text_s: float | None = None
    hidden: bool = False
    passed: Passed | None = None
    is_visible: bool = False
    max_lines: int = 0
    answerable: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    follows: str = ""
    streamed: tuple[Query, tuple[Remainder, ...], bool] | None = None
    when_complete: Callable[[], None] = lambda: None
    _typed: str = ""
    _used: asyncio.Event = field(default_factory=asyncio.Event)
    _all_wanted: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None
    _source: CompletionSource = field(init=False)
    _on_event: Callable[[Generation], None] = field(init=False)

    @property
    def running(self) -> bool:
        """Whether more text may follow."""
        return not self.ended.is_set()

    @property
    def has_text(self) -> bool:
        """Whether any suggestion has text."""
        return self.last is not None and any(suggestion.text for suggestion in self.last.suggestions)

    def run(self, source: CompletionSource, request: CompletionRequest, on_event: Callable[[Generation], None]) -> None:
        """Start the engine's stream in the background. `on_event` is called after each event."""
        self.max_lines, self._source, self._on_event = request.max_lines, source, on_event
        self._task = asyncio.create_task(self._read(request))

    def note_use(self, now: Situation, *, wants_all: bool) -> None:
        """Note that the suggestion fits the text around a cursor: the pause before alternatives begins again.

        `wants_all` ends the pause instead, and the engine generates the alternatives now.
        """
        self._typed = typed_since(self.start, now) or ""
        self._used.set()
        if wants_all:
            self._all_wanted.set()
        self._note_answerable()

    @property
    def is_requested(self) -> bool:
        """Whether a manual request was made for it, so that manual mode and the snooze do not hide it."""
        return self._all_wanted.is_set()

    @property
    def is_cut(self) -> bool:
        """Whether its maximum of lines has cut it, or may still do so. A manual request wants all of it."""
        reason = self.last.stop_reason if self.last is not None else None
        return self.max_lines > 0 and reason in (None, StopReason.MAX_LINES)

    def cancel(self) -> None:
        """Stop the generation. Closing the stream cancels the engine's work; one that has ended closes its own."""
        if self.running:
            self.cancelled = True
            self._end()
            if self._task is not None:
                self._task.cancel()

    @property
    def is_answerable(self) -> bool:
        """Whether the first suggestion is complete, or no more text changes what an answer has of it."""
        if self.is_first_complete or self.is_streamed or not self.running:
            return self.is_first_complete
        growing = next(iter(self.last.suggestions if self.last else ()), Suggestion(""))
        shows_start, typed = self.shows_start and not self.is_requested, len(self._typed)
        return growing.line > typed or (shows_start and not may_show_more(growing, typed))

    @property
    def is_first_complete(self) -> bool:
        """Whether the first suggestion is complete."""
        return self.last is not None and (self.last.done or self.last.whole > 0)

    @property
    def is_settled(self) -> bool:
        """Whether all suggestions so far are complete. Alternatives may follow."""
        return not self.running or (self.last is not None and 0 < len(self.last.suggestions) <= self.last.whole)

    def _end(self) -> None:
        self.answerable.set()
        self.ended.set()

    def remainders(self, now: Situation) -> tuple[Remainder, ...] | None:
        """Return the remainders of the suggestions at another cursor.

        Empty while there is no text yet, None if no suggestion fits there any more.
        """
        typed = typed_since(self.start, now)
        if typed is None or not self._may_come(typed):
            return None
        if self.last is None:
            return () if self.running else None
        whole = self.last.whole if self.running else len(self.last.suggestions)
        found = [
            remainder(index, suggestion, self.start, now, typed, grows=index >= whole)
            for index, suggestion in enumerate(self.last.suggestions)
        ]
        fitting = tuple(one for one in found if one is not None)
        return fitting if fitting or (self.running and not self.last.suggestions) else None

    def _may_come(self, typed: str) -> bool:
        """Return whether greedy decoding agrees with what was typed but for blanks; if not, a new request is sooner."""
        if self.last is None or self.is_first_complete or not self.running:
            return True
        greedy, wanted = "".join(self.last.greedy.split()), "".join(typed.split())
        return greedy.startswith(wanted) or wanted.startswith(greedy)

    def shown_of(self, left: Remainder, now: Situation, *, is_whole: bool, least: float) -> Remainder | None:
        """Return what is shown at a cursor of the first suggestion's remainder; None if nothing of it is.

        That is no more than an answer may have, of a growing block its first line, and as much as is probably right,
        unless the user wants it whole; `least` is the least probability of what is shown.
        """
        suggestion = self.last.suggestions[left.index] if self.last is not None else Suggestion(left.text)
        end = suggestion.line - left.typed
        if 0 < end < len(left.text) and not (self.is_streamed or self.is_first_complete):
            left = shortened(left, end, now)
        if is_whole:
            return left
        end = worthwhile_end(suggestion, left.typed, grows=not self.is_first_complete, least=least)
        length = end - left.typed
        shown = shortened(left, min(length, len(left.text)), now)
        return shown if shown.text.strip() and not opens_pair(shown, now) else None

    async def _read(self, request: CompletionRequest) -> None:
        adds_later = request.suggestions > 1 and not request.invoked
        try:
            first = replace(request, suggestions=1) if adds_later else request
            if not await self._listen(first, is_last=not adds_later):
                await self._listen(replace(first, remote=False), is_last=not adds_later)
            if adds_later and self.running and self.last is not None and self.is_first_complete:
                await self._pause()
                await self._add_alternatives(replace(request, ahead=False), self.last)
        except DraftlineError as error:
            self.error = error
            _log.warning("The engine failed to complete: %s", error.logged)
        finally:
            if not (self.cancelled or self.error or (self.last and self.last.done)):
                self.error = EngineUnavailableError("The engine's stream ended before the completion was done.")
            self._end()

    async def _listen(self, request: CompletionRequest, *, is_last: bool) -> bool:
        """Store each event. If another request follows, the end of this one only completes the first suggestion.

        Return False at an event that takes back text which must stay. The request is then repeated without the model
        server, and goes on where the text is as long as before.
        """
        may_grow = self.is_streamed and request.suggestions == 1  # a client that shows growing text gets it whole
        async with contextlib.aclosing(self._source.complete(request)) as events:
            async for event in events:
                shown, text = _first_text(self.last), _first_text(event)
                if not self._may_follow(shown, text):
                    return False
                if not event.done and len(text) < len(shown) and shown.startswith(text):
                    continue
                if event.done and event.suggestions and not is_last:
                    self.last = replace(event, done=False, whole=1)
                else:
                    self.last = replace(event, whole=0) if may_grow and not event.done else event
                if self.last.done:
                    self._end()
                self._note_answerable()
                self._on_event(self)
                if event.done:
                    break
        return True

    def _note_answerable(self) -> None:
        if not self.running or self.is_answerable:
            self.answerable.set()
        else:
            self.answerable.clear()  # what was answered is typed or accepted

    def _may_follow(self, shown: str, text: str) -> bool:
        """Return whether a text may take the place of the one on the screen.

        A model server's text may replace a local one that nobody can have read. What the user typed along it stays, and
        what was answered, unless the client shows how it grows.
        """
        is_answered = self.answerable.is_set() or (self.is_visible and not self.is_streamed)
        kept = shown if is_answered else self._typed
        return not text or not shown.startswith(kept) or text.startswith(kept) or kept.startswith(text)

    async def _pause(self) -> None:
        """Wait for a pause in typing while the suggestion is visible, or for a request of all suggestions."""
        while not self._all_wanted.is_set():
            self._used.clear()
            try:  # in Python 3.11, `asyncio.wait_for` may lose a `cancel`
                async with asyncio.timeout(PAUSE_S if self.is_streamed and not self.hidden else None):
                    await self._used.wait()
            except TimeoutError:
                break

    async def _add_alternatives(self, request: CompletionRequest, shown: CompletionEvent) -> None:
        """Send the request again with alternatives.

        The first suggestion stays as it is, with the probabilities that say how much of it is shown. Results that begin
        with another one, or an error of the engine, add none.
        """
        known = shown
        try:
            async with contextlib.aclosing(self._source.complete(request)) as events:
                async for event in events:
                    if event.whole > 1 and event.suggestions[0].text == shown.suggestions[0].text:
                        suggestions = (shown.suggestions[0], *event.suggestions[1:])
                        known = replace(shown, suggestions=suggestions, done=event.done, whole=event.whole)
                    if event.done:
                        break
                    if self.last is not known:
                        self.last = known
                        self._on_event(self)
        except DraftlineError as error:
            _log.warning("The engine failed to generate alternatives: %s", error.logged)
        self.last = replace(known, done=True)
        self._end()
        self._on_event(self)


def _first_text(event: CompletionEvent | None) -> str:
    return event.suggestions[0].text if event is not None and event.suggestions else ""
