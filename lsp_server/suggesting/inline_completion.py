"""The life of a request in the server: debounce, cancel-previous, reuse of what is in flight or shown, streaming."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from completion.request import CompletionRequest
from lsp_server.documents.documents import Document
from lsp_server.documents.text_lines import Edit, Place
from lsp_server.empty_reason import EmptyReason
from lsp_server.gate.acceptance_model import Strictness
from lsp_server.suggesting.generation import CompletionSource, Generation
from lsp_server.suggesting.narrowing import CLOSERS, MOST_CLOSERS
from lsp_server.suggesting.query import Answer, Query, answer_from, situation_at
from lsp_server.suggesting.request_policy import RequestPolicy
from lsp_server.suggesting.typing_rhythm import TypingRhythm

WITHDRAWN_GRACE_S = 0.4
"""A withdrawn request's generation lives on this long: editors withdraw it just before they ask again."""


@dataclass(slots=True)
class _Ticket:
    """Held by the newest query of a document; taken over by the next.

    Attributes:
        taken_over: Set when the query is of no more interest.
        waits: Whether it waits for the engine.
    """

    taken_over: asyncio.Event = field(default_factory=asyncio.Event)
    waits: bool = False


@dataclass(slots=True)
class _Desk:
    """What goes on in one document: the newest query, and the generation that serves it."""

    ticket: _Ticket = field(default_factory=_Ticket)
    query: Query | None = None
    generation: Generation | None = None

    def take_over(self) -> _Ticket:
        """Answer the older query at once and hold the desk from now on."""
        self.ticket.taken_over.set()
        self.ticket = _Ticket()
        return self.ticket

    def clear(self) -> None:
        """Drop the generation."""
        if self.generation is not None:
            self.generation.cancel()
        self.generation = None


class InlineCompleter:
    """Answers queries, one generation at a time in a document.

    Args:
        source: The engine; None while it is not ready.
        gate: Says which queries are refused.
        build_request: Makes the engine's request of a query.
        on_partial: Called with a query and what is known of its answer while text grows.
        on_answer: Called with every query and its answer.
        clock: Seconds, monotonic.
    """

    def __init__(
        self,
        *,
        source: Callable[[], CompletionSource | None],
        gate: RequestPolicy,
        build_request: Callable[[Query], CompletionRequest],
        on_partial: Callable[[Query, Answer, bool], None],
        on_answer: Callable[[Query, Answer], None],
        clock: Callable[[], float],
    ) -> None:
        self._source = source
        self._gate = gate
        self._build_request = build_request
        self._on_partial = on_partial
        self._on_answer = on_answer
        self.clock = clock
        self._desks: dict[str, _Desk] = {}
        self._rhythm = TypingRhythm()

    @property
    def working(self) -> bool:
        """Whether the engine works for a query that waits for its answer."""
        return any(desk.ticket.waits for desk in self._desks.values())

    async def answer(self, query: Query) -> Answer:
        """Answer one query; an older one of the same document is answered at once, with nothing."""
        desk = self._desks.setdefault(query.document.uri, _Desk())
        ticket = desk.take_over()
        desk.query = query
        if not query.invoked:
            self._rhythm.key(query.received)
        try:
            answer = await self._decide(query, desk, ticket)
        except asyncio.CancelledError:
            asyncio.get_running_loop().call_later(WITHDRAWN_GRACE_S, self._drop_unclaimed, desk, ticket)
            generation = desk.generation if desk.ticket is ticket else None
            self._on_answer(query, Answer(generation, reason=EmptyReason.CANCELLED))
            raise
        self._on_answer(query, answer)
        return answer

    def document_changed(self, document: Document, edits: Sequence[Edit]) -> None:
        """The text changed: stop what cannot serve any of the places where the cursor may now stand."""
        desk = self._desks.get(document.uri)
        if desk is None or desk.generation is None or not edits:
            return
        if any(self._fits(desk.generation, document, place) for place in _likely_cursors(document, edits[-1])):
            desk.generation.asked_again(for_all=False)  # some editors narrow what they show by themselves
        else:
            desk.clear()

    def serves(self, document: Document, place: Place) -> bool:
        """Whether what goes on in a document serves a cursor that rests there; else it is stopped, its query too."""
        desk = self._desks.get(document.uri)
        if desk is None or desk.generation is None:
            return False
        if not self._fits(desk.generation, document, place):
            desk.take_over()
            desk.clear()
        return desk.generation is not None

    def put_away(self, uri: str, id_: str) -> None:
        """A completion left the screen: stop it, and the query that waits for it, if nothing newer goes on."""
        desk = self._desks.get(uri)
        if desk is not None and desk.generation is not None and desk.generation.id == id_:
            desk.take_over()
            desk.clear()

    def clear(self, uri: str) -> None:
        """Stop whatever goes on in a document: a suggestion was accepted or dismissed, or the document closed."""
        desk = self._desks.pop(uri, None)
        if desk is not None:
            desk.take_over()
            desk.clear()

    def _fits(self, generation: Generation, document: Document, place: Place) -> bool:
        return generation.remainders(situation_at(document, place)) is not None

    async def _decide(self, query: Query, desk: _Desk, ticket: _Ticket) -> Answer:
        refusal = self._gate.refusal(query.document, query.place)
        source = self._source()
        if refusal or source is None:
            desk.clear()
            return Answer(reason=refusal or EmptyReason.NOT_READY)
        if not self._is_reusable(query, desk):
            desk.clear()
            if not query.invoked and (refusal := await self._hold_back(query, ticket)):
                return Answer(reason=refusal)
        return await self._generate(query, desk, ticket, source)

    def _is_reusable(self, query: Query, desk: _Desk) -> bool:
        generation = desk.generation
        if generation is None or generation.error or generation.cancelled:
            return False
        left = generation.remainders(query.situation)
        if left is None or not query.invoked:
            return left is not None
        if generation.start == query.situation or not generation.is_first_whole:
            return generation.wanted >= query.enough
        return len(left) >= query.enough  # some may have been typed past, or go on from another place than this

    async def _hold_back(self, query: Query, ticket: _Ticket) -> EmptyReason | None:
        """Gate and debounce of a query that nobody asked for."""
        refusal = self._gate.automatic_refusal(query.document, query.place)
        if refusal:
            return refusal
        try:
            wait_s = self._rhythm.wait_s(query.settings.debounce_ms / 1000)
            await asyncio.wait_for(ticket.taken_over.wait(), wait_s)
        except TimeoutError:
            if not ticket.taken_over.is_set():  # which may happen just as the wait ends
                return EmptyReason.OUTDATED if query.document.version != query.version else None
        return EmptyReason.SUPERSEDED

    async def _generate(self, query: Query, desk: _Desk, ticket: _Ticket, source: CompletionSource) -> Answer:
        while True:
            generation = desk.generation
            if generation is None:
                generation = self._start(query, desk, source)
            generation.asked_again(for_all=query.invoked)
            self._tell_partial(desk, generation)
            # What comes by itself never waits for alternatives; who asks by a key wants to choose among them.
            ready = generation.ended() if query.invoked else generation.first_whole()
            ticket.waits = True
            try:
                await _first(ready, ticket.taken_over.wait())
            finally:
                ticket.waits = False
            if ticket.taken_over.is_set():
                return Answer(generation, reason=EmptyReason.SUPERSEDED)
            answer = answer_from(query, generation)
            if answer is not None and answer.remainders and self._holds_back(query, generation):
                return Answer(generation, reason=EmptyReason.HELD_BACK)
            if answer is not None:
                return answer
            if query.document.version != query.version:
                return Answer(generation, reason=EmptyReason.OUTDATED)
            desk.clear()  # what was typed ahead of the text turned out to be something else

    def _start(self, query: Query, desk: _Desk, source: CompletionSource) -> Generation:
        generation = Generation(
            secrets.token_hex(8),
            query.situation,
            query.wanted,
            self.clock(),
            is_streamed=query.settings.streaming,
        )
        desk.generation = generation

        def on_event(generation: Generation) -> None:
            if generation.first_text_s is None and generation.has_text:
                generation.first_text_s = self.clock()
                self._rhythm.answered(generation.first_text_s - generation.started_s)
            self._tell_partial(desk, generation)

        generation.run(source, self._build_request(query), on_event)
        return generation

    def _tell_partial(self, desk: _Desk, generation: Generation) -> None:
        query = desk.query
        if query is None or desk.generation is not generation:
            return
        left = generation.remainders(query.situation)
        if left is None:
            if generation.running:
                generation.cancel()
        elif any(one.text for one in left) and not self._holds_back(query, generation):
            answer = Answer(generation, tuple(one for one in left if one.text))
            self._on_partial(query, answer, generation.is_settled)

    def _holds_back(self, query: Query, generation: Generation) -> bool:
        strictness = Strictness.OFF if query.invoked else query.settings.gate
        generation.held_back = self._gate.acceptance.holds_back(query.document.uri, generation, strictness)
        return generation.held_back

    def _drop_unclaimed(self, desk: _Desk, ticket: _Ticket) -> None:
        if desk.ticket is ticket:
            desk.clear()


def _likely_cursors(document: Document, edit: Edit) -> Iterator[Place]:
    """Where the cursor may stand after an edit: behind what was inserted, or before closers at its end."""
    typed = len(edit.inserted)
    while True:
        yield document.lines.advance(edit.start, typed)
        if typed == 0 or edit.inserted[typed - 1] not in CLOSERS or len(edit.inserted) - typed >= MOST_CLOSERS:
            return
        typed -= 1


async def _first(*waits: object) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]  # type: ignore[call-overload]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
