"""A request in progress: starts attempts, streams them, and finishes them as suggestions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from completion.cancellation import CancelToken
from completion.decoding.attempt import Attempt, Branch, TokenSource
from completion.decoding.constraints import Constraints, ConstraintState, known_names
from completion.decoding.decoder import Step
from completion.decoding.finishing import Finisher
from completion.decoding.output_text import OutputText
from completion.decoding.run_record import RunRecord
from completion.decoding.stop_rules import StopRules
from completion.ending.context import Context
from completion.ending.decision import shown
from completion.ending.rule import DropReason, Stop
from completion.grammar.constraint import GrammarConstraint
from completion.model.tokenizer import CodeTokenizer
from completion.prompt.planner import Prompt
from completion.request import CompletionRequest, StopReason, Suggestion
from drafting.verifier import MODEL


@dataclass(frozen=True, slots=True)
class Task(ABC):
    """A request in progress, with everything that its attempts share.

    Attributes:
        request: The request, with plain line feeds and snippets of other files.
        context: The document around the cursor, for stop rules and filters.
        grammar: Constraint on every attempt, or the reason why there is none.
    """

    tokenizer: CodeTokenizer
    request: CompletionRequest
    context: Context
    prompt: Prompt
    grammar: GrammarConstraint
    record: RunRecord

    @abstractmethod
    def source(
        self, constraints: Constraints, written: Sequence[int], state: ConstraintState, *, is_first: bool
    ) -> TokenSource:
        """Return the source of an attempt's tokens after those that it has already written.

        `state` is that of the constraints after them. `is_first` is for the attempt at the first suggestion.
        """

    def release(self) -> None:  # noqa: B027 - most sources leave nothing behind
        """Remove what an attempt that did not end has left behind."""

    def tokens_that_stay(self, attempt: Attempt) -> int:
        """Return how many of an attempt's tokens are certain to stay, so that their text may be shown."""
        return attempt.output.tokens

    def first_attempt(self) -> Attempt:
        """Start the attempt at the first suggestion."""
        return self._attempt(StopRules(self.request, self.context), is_first=True)

    def branch_attempt(self, first: Attempt, branch: Branch, max_tokens: int) -> Attempt:
        """Start an attempt that branches off from the first one; the branch's first token may already end it."""
        known = first.top_tokens[: branch.start + 1]
        shared = first.source.tokens[: branch.start]
        rules, constraints = first.rules.for_branch(first.log_probabilities, max_tokens), first.source.constraints
        attempt = self._attempt(rules, (*shared, branch.token), branch.state, constraints)
        for token in shared:
            attempt.output.extend(self.tokenizer.token_bytes(token), MODEL)
        attempt.log_probabilities += first.log_probabilities[: branch.start]
        attempt.top_tokens += [*known[:-1], replace(known[-1], taken=branch.token)]
        attempt.stop = attempt.extend(Step((branch.token,), (MODEL,), (branch.log_probability,), 0, 0.0))
        return attempt

    def attempt_from(self, tokens: tuple[int, ...], log_probabilities: tuple[float, ...], rules: StopRules) -> Attempt:
        """Make a finished attempt from tokens that were generated elsewhere, up to where a stop rule ends it."""
        attempt = self._attempt(rules)
        step = Step(tokens, (MODEL,) * len(tokens), log_probabilities, 0, 0.0)
        attempt.stop = attempt.extend(step) or Stop(len(attempt.output.whole()), StopReason.MAX_TOKENS)
        return attempt

    def stream(self, attempt: Attempt, cancel: CancelToken) -> Iterator[str]:
        """Generate an attempt; yield its visible part each time that it grows.

        Raises:
            CancelledError: Between two steps.
        """
        stable, lines = "", 0

        def show() -> None:
            nonlocal stable, lines
            kept = self.tokens_that_stay(attempt)
            limit = attempt.output.characters(kept)
            if len(stable) >= limit:
                return
            all_kept, growing = kept == attempt.output.tokens, attempt.output.growing()
            now = shown(growing, self.context, limit) if self.request.filters else self._kept_lines(growing[:limit])
            if len(now) > len(stable) or (all_kept and growing.count("\n") > lines):
                stable, lines = now, growing.count("\n")
                visible = self._visible_part(attempt, stable, all_kept=all_kept)
                attempt.shown = visible if visible.startswith(attempt.shown) else attempt.shown

        yield from attempt.stream(cancel, show)

    def _kept_lines(self, text: str) -> str:
        """Return the part of an unfiltered text that no stop rule takes back: of several lines, those that are whole.

        A line may turn out to be the one before which the block ended; the turn of a conversation ends nowhere else.
        """
        if self.request.messages or "\n" not in text:
            return text
        return text[: text.rfind("\n")].rstrip()

    def _visible_part(self, attempt: Attempt, stable: str, *, all_kept: bool) -> str:
        """Return what may be shown of an attempt with a stable prefix: also a line whose brackets are still open."""
        visible = self._finisher.visible_part(stable, attempt.shown)
        line = self.opening_line(attempt) if all_kept and visible == attempt.shown else None
        return visible if line is None else line.text

    def finish(self, attempt: Attempt) -> Suggestion | DropReason:
        """Return the suggestion that a finished attempt becomes; it starts with what `stream` has shown."""
        if attempt.stop is None:
            return DropReason.EMPTY
        raw = attempt.suggestion(attempt.stop)
        result = self._finisher.finish(raw, attempt.stop.reason, attempt.shown)
        is_repeated = attempt.stop.reason is StopReason.SUFFIX_OVERLAP  # its first line may still be another item's
        early = self.opening_line(attempt) if is_repeated or "\n" in raw.text else None
        if early is not None and not (isinstance(result, Suggestion) and result.text.startswith(early.text)):
            result = early
        if isinstance(result, DropReason):
            return result
        return replace(result, ends=attempt.ends(result.text))

    def opening_line(self, attempt: Attempt) -> Suggestion | None:
        """Return the attempt's first line if it may be shown before its brackets are closed."""
        line = attempt.first_line() if self.request.filters else None
        return None if line is None else self._finisher.opening_line(line)

    def constraints(self) -> Constraints:
        """Return the constraints on every attempt: the forced bytes of healing, the grammar, the known names."""
        names = known_names(self.request, self.prompt.healed.run)
        return Constraints(self.tokenizer, self.prompt.forced, self.grammar, self.tokenizer.stop_ids, names)

    @property
    def _finisher(self) -> Finisher:
        return Finisher(self.request, self.context, self.grammar, self.prompt.forced)

    def _attempt(
        self,
        rules: StopRules,
        written: Sequence[int] = (),
        state: ConstraintState | None = None,
        constraints: Constraints | None = None,
        *,
        is_first: bool = False,
    ) -> Attempt:
        constraints = constraints or self.constraints()
        source = self.source(constraints, written, state or constraints.start, is_first=is_first)
        return Attempt(self.request, self.context, source, OutputText(len(self.prompt.forced)), rules, self.record)
