"""One request on its way through the engine: begins its attempts and finishes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from completion.cache.kv_session import KVSession
from completion.cancellation import CancelToken
from completion.decoding.attempt import Attempt, Branch
from completion.decoding.constraints import Constraints, ConstraintState
from completion.decoding.decoder import Decoder, Step
from completion.decoding.finishing import Finisher
from completion.decoding.run_record import RunRecord
from completion.grammar.constraint import GrammarConstraint, Off
from completion.model.causal_model import CausalModel
from completion.model.tokenizer import CodeTokenizer
from completion.postprocess import Context, Dropped, DropReason
from completion.prompt.planner import Prompt
from completion.request import CompletionRequest, GrammarMode, Mode, StopReason, Suggestion
from completion.stopping.output_text import OutputText
from completion.stopping.rules import Stop, StopRules
from drafting.session import Drafters, DraftingSession
from drafting.verifier import MODEL


@dataclass(frozen=True, slots=True)
class Task:
    """One request with everything that its stages share.

    Attributes:
        model: Scores tokens.
        tokenizer: The model's tokenizer.
        drafters: Propose tokens.
        request: The request, with plain line feeds and the pieces of other files.
        context: The document around the cursor, for stop rules and filters.
        prompt: The request as tokens.
        session: The document's cache, which holds the prompt.
        grammar: Binds every attempt, or says why it does not.
        record: Counts steps and time.
    """

    model: CausalModel
    tokenizer: CodeTokenizer
    drafters: Drafters
    request: CompletionRequest
    context: Context
    prompt: Prompt
    session: KVSession
    grammar: GrammarConstraint | Off
    record: RunRecord

    def first(self) -> Attempt:
        """Begin the first suggestion, which starts at the prompt's end."""
        attempt = self._attempt(StopRules(self.request, self.context))
        attempt.decoder.drafter = self._drafting()
        return attempt

    def other(self, first: Attempt, branch: Branch, max_tokens: int) -> Attempt:
        """Begin an attempt that branches off from the first one; its first token may end it at once."""
        shared = first.decoder.tokens[: branch.start]
        attempt = self._attempt(
            first.rules.beside(first.log_probabilities, max_tokens), (*shared, branch.token), branch.state
        )
        for token in shared:
            attempt.output.extend(self.tokenizer.token_bytes(token), MODEL)
        attempt.log_probabilities += first.log_probabilities[: branch.start]
        attempt.stop = attempt.extend(Step((branch.token,), (MODEL,), (branch.log_probability,), 0, 0.0))
        return attempt

    def written(self, tokens: tuple[int, ...], log_probabilities: tuple[float, ...]) -> Attempt:
        """Make an attempt of tokens that were generated elsewhere, up to where a stop rule ends it."""
        attempt = self._attempt(StopRules(self.request, self.context))
        step = Step(tokens, (MODEL,) * len(tokens), log_probabilities, 0, 0.0)
        attempt.stop = attempt.extend(step) or Stop(len(attempt.output.whole()), StopReason.MAX_TOKENS)
        return attempt

    def stream(self, attempt: Attempt, cancel: CancelToken) -> Iterator[str]:
        """Write an attempt; yield the part of it that may be shown each time that part grows.

        Raises:
            CancelledError: Between two steps.
        """
        shown = ""
        for stable in attempt.stream(cancel):
            visible = self._finisher.visible_part(stable, shown)
            if visible == shown and (line := self.opening(attempt)) is not None:
                visible = line.text
            if len(visible) > len(shown):
                shown = visible
                yield shown

    def finish(self, attempt: Attempt) -> Suggestion | Dropped:
        """Return what filters and grammar leave of a finished attempt: at least what `stream` may have shown."""
        if attempt.stop is None:
            return Dropped(DropReason.EMPTY)
        raw = attempt.text(attempt.stop)
        left = self._finisher.finish(raw, attempt.stop.reason)
        early = self.opening(attempt) if "\n" in raw.text else None
        if early is None or (isinstance(left, Suggestion) and left.text.startswith(early.text)):
            return left
        return early

    def opening(self, attempt: Attempt) -> Suggestion | None:
        """Return the attempt's first line if it may be shown before its brackets are closed."""
        line = attempt.line() if self.request.filters else None
        return None if line is None else self._finisher.opening_line(line)

    def constraints(self) -> Constraints:
        """Return what binds every attempt: the forced bytes of healing and the grammar."""
        bound = self.grammar if isinstance(self.grammar, GrammarConstraint) else None
        strict = self.request.grammar is GrammarMode.STRICT
        return Constraints(self.tokenizer, self.prompt.forced, bound, self.tokenizer.stop_ids, grammar_binds=strict)

    def guesses_beside(self, first: Attempt) -> DraftingSession | None:
        """Return a drafter for branches of the first attempt; the attempt itself is one of its sources."""
        drafting = self._drafting()
        if drafting is not None:
            drafting.observe_attempt(self.prompt.before_cursor, first.decoder.tokens)
        return drafting

    @property
    def _finisher(self) -> Finisher:
        return Finisher(self.request, self.context, self.grammar, self.prompt.forced)

    def _attempt(self, rules: StopRules, written: Sequence[int] = (), state: ConstraintState | None = None) -> Attempt:
        constraints = self.constraints()
        decoder = Decoder(
            model=self.model,
            session=self.session,
            prompt=[*self.prompt.tokens, *written],
            constraints=constraints,
            drafter=None,
            forced_tokens=lambda data: self.tokenizer.encode(data.decode("utf-8", "ignore")),
            sampling=self.request.sampling,
            ends=self.tokenizer.stop_ids,
            state=state or constraints.start,
        )
        return Attempt(self.request, self.context, decoder, OutputText(len(self.prompt.forced)), rules, self.record)

    def _drafting(self) -> DraftingSession | None:
        if not self.request.drafting:
            return None
        before, single_line = self.prompt.before_cursor, self.context.mode is Mode.LINE
        return self.drafters.session(self.prompt.tokens, self.request.workspace, before, single_line=single_line)
