"""Answers inline completion requests: debounce, reuse of running generations, cancellation, streaming."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from completion.request import CompletionRequest
from lsp_server.documents.documents import Document
from lsp_server.documents.text_lines import Edit, Place
from lsp_server.empty_reason import EmptyReason
from lsp_server.suggesting.ahead import Ahead, rest_of, was_superseded
from lsp_server.suggesting.document_state import DocumentState, Turn
from lsp_server.suggesting.generation import CompletionSource, Generation
from lsp_server.suggesting.narrowing import Remainder, Situation
from lsp_server.suggesting.query import Answer, Query, answer_from, likely_situations, situation_at
from lsp_server.suggesting.request_policy import RequestPolicy, begins_with_word
from lsp_server.suggesting.typing_rhythm import TypingRhythm

WITHDRAWN_GRACE_S = 0.4
"""Time for which a cancelled request's generation goes on, in seconds: some editors cancel just before the next one."""


@dataclass(slots=True, kw_only=True)
class InlineCompleter:
    """Answers queries with at most one generation per document.

    Attributes:
        source: Returns the engine, None while it is not ready.
        policy: Decides which queries are refused, and which suggestions appear.
        build_request: Builds the engine's request for a query.
        on_partial: Called with a query, its answer so far, and whether the texts in it are complete.
        on_answer: Called with each query and its answer.
    """

    source: Callable[[], CompletionSource | None]
    policy: RequestPolicy
    build_request: Callable[[Query], CompletionRequest]
    on_partial: Callable[[Query, Answer, bool], None]
    on_answer: Callable[[Query, Answer], None]
    _states: dict[str, DocumentState] = field(default_factory=dict)
    _rhythm: TypingRhythm = field(default_factory=TypingRhythm)

    @property
    def working(self) -> bool:
        """Whether any query waits for the engine."""
        return any(state.turn.waits for state in self._states.values())

    async def answer(self, query: Query) -> Answer:
        """Return the answer to a query. An older query of the same document gets an empty answer at once."""
        state = self._states.setdefault(query.document.uri, DocumentState())
        turn = state.next_turn()
        state.query = query
        if not query.invoked:
            self._rhythm.key(query.received)
        try:
            answer = await self._decide(query, state, turn)
        except asyncio.CancelledError:
            asyncio.get_running_loop().call_later(WITHDRAWN_GRACE_S, self._drop_unclaimed, state, turn)
            generation = state.generation if state.turn is turn else None
            self.on_answer(query, Answer(generation, reason=EmptyReason.CANCELLED))
            raise
        self.on_answer(query, answer)
        return answer

    def document_changed(self, document: Document, edits: Sequence[Edit]) -> None:
        """Note a change of the text. Cancel the generations that fit none of the likely cursor positions."""
        if edits:
            self.drop_kept(document.uri)
        state = self._states.get(document.uri)
        if state is None or not edits:
            return
        state.changed_s = self.policy.clock()
        likely = likely_situations(document, edits)
        if state.move_on(likely if len(edits) == 1 else ()):  # others may be outside of what a situation shows
            return
        generation = state.generation
        if generation is None:
            return
        fitting = next((now for now in likely if generation.remainders(now) is not None), None)
        if fitting is None:
            state.clear()
        else:
            generation.note_use(fitting, wants_all=False)  # some editors narrow the suggestion without a request

    def drop_kept(self, changed_uri: str = "") -> None:
        """Drop the answers that are kept for other documents than a changed one: it may have been in their prompts."""
        for uri, state in self._states.items():
            if uri != changed_uri:
                state.drop_kept()

    def cursor_moved(self, document: Document, place: Place) -> bool:
        """Note a moved cursor; return whether a generation fits it. Cancel one that does not, and answer its query."""
        state = self._states.get(document.uri)
        if state is None:
            return False
        if state.generation is not None and state.generation.remainders(situation_at(document, place)) is None:
            state.next_turn()
            state.clear()
        return state.generation is not None

    def accepted(self, uri: str, id_: str) -> None:
        """Cancel a suggestion that was accepted, but neither what follows it nor a query that came after its edit."""
        state = self._states.get(uri)
        if state is not None:
            state.end_accepted(id_)

    def discard(self, uri: str, id_: str) -> None:
        """Cancel a completion that left the screen, and answer its query, unless a newer generation replaced it."""
        state = self._states.get(uri)
        if state is not None and state.generation is not None and state.generation.id == id_:
            state.next_turn()
            state.clear()

    def clear(self, uri: str) -> None:
        """Cancel all work in a document, after a suggestion was dismissed, or the document was closed."""
        state = self._states.pop(uri, None)
        if state is not None:
            state.next_turn()
            state.clear()

    async def _decide(self, query: Query, state: DocumentState, turn: Turn) -> Answer:
        await self.policy.consult(query.document)
        if turn.superseded.is_set() or query.document.version != query.version:
            return Answer(reason=EmptyReason.SUPERSEDED if turn.superseded.is_set() else EmptyReason.OUTDATED)
        refusal = self.policy.refusal(query.document, query.place)
        source = self.source()
        if refusal or source is None:
            state.clear()
            return Answer(reason=refusal or EmptyReason.NOT_READY)
        is_reusable = self._is_reusable(query, state)
        if refusal := self.policy.silence_for(query, state.generation if is_reusable else None):
            state.clear()
            return Answer(reason=refusal)
        if not is_reusable:
            state.clear()
            if not query.invoked and (refusal := await self._debounce(query, state, turn)):
                return Answer(reason=refusal)
        return await self._generate(query, state, turn, source)

    def _is_reusable(self, query: Query, state: DocumentState) -> bool:
        generation = state.generation
        if generation is None or generation.error or generation.cancelled:
            return False
        remainders = generation.remainders(query.situation)
        if remainders is None or not query.invoked:
            return remainders is not None
        if generation.is_cut:
            return False
        if generation.start == query.situation or not generation.is_first_complete:
            return generation.wanted >= query.configured
        return len(remainders) >= query.configured  # typing may have ruled some out

    async def _debounce(self, query: Query, state: DocumentState, turn: Turn) -> EmptyReason | None:
        """Wait until an automatic query may go to the engine; return None then, else why it may not."""
        refusal = self.policy.automatic_refusal(query.document, query.place)
        if refusal:
            return refusal
        wait_s = self._rhythm.wait_s(query.settings.debounce_ms / 1000)
        if await turn.is_superseded_within(state.left_s(wait_s, query.received)):
            return EmptyReason.SUPERSEDED
        return EmptyReason.OUTDATED if query.document.version != query.version else None

    async def _generate(self, query: Query, state: DocumentState, turn: Turn, source: CompletionSource) -> Answer:
        while True:
            generation = state.generation
            if generation is None:
                generation = state.generation = self._new_generation(query, query.situation)
                self._run(generation, state, source, self.build_request(query))
            generation.note_use(query.situation, wants_all=query.invoked)
            self._send_partial(state, generation)
            # Alternatives never delay an automatic suggestion. A manual request waits for all suggestions; of a client
            # that gets none later, only one that is made again.
            waits_for_all = query.invoked and (generation.is_streamed or generation.is_visible)
            await turn.wait_for(generation.ended if waits_for_all else generation.answerable)
            if reason := await self._end_before_answer(query, state, turn):
                return Answer(generation, reason=reason)
            answer = None if was_superseded(generation) else answer_from(query, generation)
            if answer is not None:
                return self._shown(query, state, generation, answer)
            if query.document.version != query.version:
                return Answer(generation, reason=EmptyReason.OUTDATED)
            if generation.running and not generation.is_answerable:
                continue  # a model server's text took the place of the one whose start was certain
            state.clear()  # the user typed ahead of text that then did not fit, or the engine ended what was in advance

    def _shown(self, query: Query, state: DocumentState, generation: Generation, answer: Answer) -> Answer:
        """Return an answer with as much of its text as is shown, and plan what follows the acceptance of that."""
        if not answer.remainders:
            generation.is_visible = False
            return answer
        offered = self.policy.offered(query, generation, answer.remainders)
        if not offered:
            return Answer(generation, reason=EmptyReason.HIDDEN)
        generation.is_visible = True
        if generation.is_first_complete:
            self._look_ahead(query, state, generation, offered[0])
        else:
            generation.when_complete = partial(self._look_ahead, query, state, generation, offered[0])
        return replace(answer, remainders=offered)

    async def _end_before_answer(self, query: Query, state: DocumentState, turn: Turn) -> EmptyReason | None:
        """Wait until a complete suggestion may appear; return None then, else why it does not."""
        if turn.superseded.is_set():
            return EmptyReason.SUPERSEDED
        generation = state.generation
        if generation is None:
            return EmptyReason.OUTDATED
        wait_s = self.policy.unshown_s(query, generation) if generation.has_text else 0.0
        if wait_s > 0 and await turn.is_superseded_within(wait_s):
            return EmptyReason.TYPING
        if silence := self.policy.silence_for(query, generation):
            return silence
        return EmptyReason.OUTDATED if state.generation is None else None

    def _look_ahead(self, query: Query, state: DocumentState, shown: Generation, first: Remainder) -> None:
        """Plan what follows the acceptance of the first suggestion on the screen: its rest or a new generation."""
        after = query.situation.with_accepted(first)
        if not first.text or query.document.version != query.version:
            return
        if state.ahead is None or not state.ahead.is_for(after):
            state.drop_ahead()
            rest = rest_of(shown, _new_id(), query.situation, first)
            if rest is not None:
                state.ahead = Ahead(rest, None)
            elif query.settings.ahead and not begins_with_word(after.suffix):
                state.ahead = self._generation_ahead(query, state, shown, first)
        if state.ahead is not None:
            state.ahead.wait(shown)

    def _generation_ahead(self, query: Query, state: DocumentState, shown: Generation, first: Remainder) -> Ahead:
        automatic = replace(query, invoked=False)
        generation = self._new_generation(automatic, query.situation.with_accepted(first))
        generation.follows, generation.hidden = shown.id, True  # nobody sees it yet: it gets no alternatives
        asked = self.build_request(automatic)
        suffix = asked.suffix[first.replace_after :]
        asked = replace(asked, prefix=asked.prefix + first.text, suffix=suffix, names=(), next_line=True)

        def start(ahead: bool) -> bool:  # noqa: FBT001 - callbacks are called by position
            source = self.source()
            policy, document = self.policy, query.document
            refusal = policy.refusal(document, query.place) or policy.quiet.silence(document)
            if source is not None and refusal is None:
                self._run(generation, state, source, replace(asked, ahead=ahead))
            return source is not None and refusal is None

        return Ahead(generation, start)

    def _new_generation(self, query: Query, start: Situation) -> Generation:
        return Generation(_new_id(), start, query.wanted, query.settings.streaming, query.shows_start)

    def _run(
        self, generation: Generation, state: DocumentState, source: CompletionSource, request: CompletionRequest
    ) -> None:
        generation.started_s = self.policy.clock()

        def on_event(generation: Generation) -> None:
            if generation.first_text_s is None and generation.has_text:
                generation.first_text_s = self.policy.clock()
                if not generation.follows:
                    self._rhythm.answered(generation.first_text_s - generation.started_s)
            self._send_partial(state, generation)
            if generation.is_first_complete and state.generation is generation:
                generation.when_complete()

        generation.run(source, request, on_event)

    def _send_partial(self, state: DocumentState, generation: Generation) -> None:
        query = state.query
        if query is None or state.generation is not generation:
            return
        remainders = generation.remainders(query.situation)
        if remainders is None:
            if generation.running:
                generation.cancel()
            return
        texts = tuple(one for one in remainders if one.text)
        if not (texts and generation.is_streamed) or self.policy.silence_for(query, generation):
            return
        if self.policy.unshown_s(query, generation) > 0:
            return
        offered = self.policy.offered(query, generation, texts)
        streamed = query, offered, generation.is_settled
        if offered and streamed != generation.streamed:
            generation.streamed = streamed
            generation.is_visible = True
            self.on_partial(query, Answer(generation, offered), generation.is_settled)

    def _drop_unclaimed(self, state: DocumentState, turn: Turn) -> None:
        if state.turn is turn:
            state.clear()


def _new_id() -> str:
    return secrets.token_hex(8)
