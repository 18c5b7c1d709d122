"""What all texts of one request share, and how one of them is begun and finished."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from completion.attempt import Attempt, Branch
from completion.constraints import Constraints
from completion.decoding import Decoder
from completion.finishing import finish
from completion.grammar.constraint import GrammarConstraint, Off
from completion.kv_session import KVSession
from completion.model.causal_model import CausalModel
from completion.model.tokenizer import CodeTokenizer
from completion.output_text import OutputText
from completion.postprocess import Context, Dropped, DropReason
from completion.prompt import Prompt
from completion.request import CompletionRequest, GrammarMode, Mode, Suggestion
from completion.run_record import RunRecord
from completion.stopping import StopRules
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
        return self._attempt((), (), ())

    def other(self, first: Attempt, branch: Branch) -> Attempt:
        """A text that branches off from the first one, which is a source of guesses for it."""
        text = first.decoder.tokens
        before = first.log_probabilities[: branch.start]
        log_probabilities = (*before, branch.log_probability - sum(before))
        return self._attempt((*text[: branch.start], branch.token), log_probabilities, text)

    def finish(self, attempt: Attempt) -> Suggestion | Dropped:
        """What filters and grammar leave of a finished text."""
        if attempt.stop is None:
            return Dropped(DropReason.EMPTY)
        return finish(attempt.text(attempt.stop), attempt.stop.reason, self.asked, self.context, self.grammar)

    def _attempt(self, written: tuple[int, ...], log_probabilities: Sequence[float], beside: Sequence[int]) -> Attempt:
        ends = self.tokenizer.stop_ids
        bound = self.grammar if isinstance(self.grammar, GrammarConstraint) else None
        strict = self.asked.grammar is GrammarMode.STRICT
        constraints = Constraints(self.tokenizer, self.prompt.forced, bound, ends, grammar_binds=strict)
        decoder = Decoder(
            model=self.model,
            session=self.session,
            prompt=[*self.prompt.tokens, *written],
            constraints=constraints,
            drafter=self._drafting(written, beside),
            forced_tokens=lambda data: self.tokenizer.encode(data.decode("utf-8", "ignore")),
            sampling=self.asked.sampling,
            ends=ends,
            state=constraints.after(written),
        )
        output = OutputText(len(self.prompt.forced))
        for token in written:
            output.extend(self.tokenizer.token_bytes(token), MODEL)
        rules = StopRules(self.asked, self.context)
        return Attempt(self.asked, self.context, decoder, output, rules, self.record, list(log_probabilities))

    def _drafting(self, written: tuple[int, ...], beside: Sequence[int]) -> DraftingSession | None:
        if not self.asked.drafting:
            return None
        before = self.prompt.before_cursor
        single_line = self.context.mode is Mode.LINE
        tokens = (*self.prompt.tokens, *written)
        drafting = self.drafters.session(tokens, self.asked.workspace, (*before, *written), single_line=single_line)
        if beside:
            drafting.look_into((*before, *beside))
        return drafting
