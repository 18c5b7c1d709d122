"""What all texts of one request share, and how one of them is begun and finished."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from completion.cache.kv_session import KVSession
from completion.decoding.attempt import Attempt, Branch
from completion.decoding.constraints import Constraints, ConstraintState
from completion.decoding.decoder import Decoder, Step
from completion.decoding.finishing import finish, opening_line
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
    """One request on its way.

    Attributes:
        model: Scores tokens.
        tokenizer: The model's.
        drafters: Who guesses.
        asked: The request, line ends normalised.
        context: What stop rules and filters see.
        prompt: The request as tokens.
        session: Holds the prompt.
        grammar: Binds every text, or says why it does not.
        record: Counts steps and time.
    """

    model: CausalModel
    tokenizer: CodeTokenizer
    drafters: Drafters
    asked: CompletionRequest
    context: Context
    prompt: Prompt
    session: KVSession
    grammar: GrammarConstraint | Off
    record: RunRecord

    def first(self) -> Attempt:
        """The plain text, from the prompt on."""
        attempt = self._attempt(StopRules(self.asked, self.context))
        attempt.decoder.drafter = self._drafting()
        return attempt

    def other(self, first: Attempt, branch: Branch, most_tokens: int) -> Attempt:
        """A text of at most so many tokens that branches off from the first one; the branch may end it at once."""
        shared = first.decoder.tokens[: branch.start]
        attempt = self._attempt(
            first.rules.beside(first.log_probabilities, most_tokens), (*shared, branch.token), branch.state
        )
        for token in shared:
            attempt.output.extend(self.tokenizer.token_bytes(token), MODEL)
        attempt.log_probabilities += first.log_probabilities[: branch.start]
        attempt.stop = attempt.extend(Step((branch.token,), (MODEL,), (branch.log_probability,), 0, 0.0))
        return attempt

    def written(self, tokens: tuple[int, ...], log_probabilities: tuple[float, ...]) -> Attempt:
        """A text that was written elsewhere, up to where a stop rule ends it."""
        attempt = self._attempt(StopRules(self.asked, self.context))
        step = Step(tokens, (MODEL,) * len(tokens), log_probabilities, 0, 0.0)
        attempt.stop = attempt.extend(step) or Stop(len(attempt.output.whole()), StopReason.MAX_TOKENS)
        return attempt

    def constraints(self) -> Constraints:
        """What binds every text of the request."""
        bound = self.grammar if isinstance(self.grammar, GrammarConstraint) else None
        strict = self.asked.grammar is GrammarMode.STRICT
        return Constraints(self.tokenizer, self.prompt.forced, bound, self.tokenizer.stop_ids, grammar_binds=strict)

    def finish(self, attempt: Attempt) -> Suggestion | Dropped:
        """What filters and grammar leave of a finished text: no less than what could be shown early."""
        if attempt.stop is None:
            return Dropped(DropReason.EMPTY)
        raw = attempt.text(attempt.stop)
        left = finish(raw, attempt.stop.reason, self.asked, self.context, self.grammar)
        early = self.opening(attempt) if "\n" in raw.text else None
        if early is None or (isinstance(left, Suggestion) and left.text.startswith(early.text)):
            return left
        return early

    def opening(self, attempt: Attempt) -> Suggestion | None:
        """The first line of a text that goes on to close its brackets, if it may be shown before they are closed."""
        line = attempt.line() if self.asked.filters else None
        return None if line is None else opening_line(line, self.asked, self.context, self.grammar)

    def guesses_beside(self, first: Attempt) -> DraftingSession | None:
        """Guesses for texts that branch off from the first one: it is a source of its own."""
        drafting = self._drafting()
        if drafting is not None:
            drafting.look_into(self.prompt.before_cursor, first.decoder.tokens)
        return drafting

    def _attempt(self, rules: StopRules, written: Sequence[int] = (), state: ConstraintState | None = None) -> Attempt:
        constraints = self.constraints()
        decoder = Decoder(
            model=self.model,
            session=self.session,
            prompt=[*self.prompt.tokens, *written],
            constraints=constraints,
            drafter=None,
            forced_tokens=lambda data: self.tokenizer.encode(data.decode("utf-8", "ignore")),
            sampling=self.asked.sampling,
            ends=self.tokenizer.stop_ids,
            state=state or constraints.start,
        )
        return Attempt(self.asked, self.context, decoder, OutputText(len(self.prompt.forced)), rules, self.record)

    def _drafting(self) -> DraftingSession | None:
        if not self.asked.drafting:
            return None
        before, single_line = self.prompt.before_cursor, self.context.mode is Mode.LINE
        return self.drafters.session(self.prompt.tokens, self.asked.workspace, before, single_line=single_line)
