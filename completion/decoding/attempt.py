"""An attempt: a suggestion while it is generated."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from completion.cancellation import CancelToken
from completion.decoding.constraints import NO_TOKEN, Constraints, ConstraintState
from completion.decoding.decoder import Step, TopTokens
from completion.decoding.output_text import OutputText, suggestion_ends
from completion.decoding.run_record import RunRecord
from completion.decoding.stop_rules import StopRules
from completion.ending.context import Context
from completion.ending.decision import replaced_by
from completion.ending.extent import first_line, line_end
from completion.ending.rule import Stop
from completion.request import CompletionRequest, Mode, StopReason, Suggestion

MIN_LOG_ODDS = math.log(1 / 50)
"""Minimum log-odds of a branch's first token against the token that was taken; others are too unlikely to be useful."""

OWN_ENDS = frozenset({StopReason.LINE_END, StopReason.STOP_TOKEN})
"""Ends of a text that the model itself chose."""


@dataclass(frozen=True, slots=True)
class Branch:
    """The start of a branch: another token that the model might have taken.

    Attributes:
        start: Number of the attempt's tokens before it, which the branch shares.
        total: Log-probability of the tokens up to this one.
    """

    start: int
    token: int
    log_probability: float
    total: float
    state: ConstraintState


class TokenSource(Protocol):
    """Where the tokens of an attempt come from: the local model or a server."""

    constraints: Constraints
    stop_ids: frozenset[int]
    tokens: list[int]

    def steps(self, cancel: CancelToken) -> Generator[Step]:
        """Yield decoding steps until a stop token, or until the caller stops iterating.

        Raises:
            CancelledError: Between two steps.
        """


@dataclass(slots=True, eq=False)
class Attempt:
    """A suggestion that is generated until a stop rule ends it.

    Attributes:
        request: The request, with plain line feeds.
        source: Source of the tokens; of a branch, those after its first own token.
        record: Counts and times of the whole request.
        log_probabilities: Log-probability of each token; a branch includes the tokens that it shares.
        top_tokens: The likeliest tokens at the position of each token, of a stop token too; empty if it is not known.
        stop: End of the text; None while it is generated.
        shown: Part of the text that the client has; the result starts with it.
    """

    request: CompletionRequest
    context: Context
    source: TokenSource
    output: OutputText
    rules: StopRules
    record: RunRecord
    log_probabilities: list[float] = field(default_factory=list)
    top_tokens: list[TopTokens] = field(default_factory=list)
    stop: Stop | None = None
    shown: str = ""

    def stream(self, cancel: CancelToken, after_token: Callable[[], None] = lambda: None) -> Iterator[str]:
        """Generate the text; yield `shown` when it has grown, or after each step if the client hears of all.

        `after_token` is called after each token; it may let `shown` grow. The result keeps what is shown, so that must
        not depend on how many tokens a step has.

        Raises:
            CancelledError: Between two steps.
        """
        with closing(self.source.steps(cancel)) as steps:
            for step in steps:
                before = len(self.shown)
                self.add(step, after_token)
                if self.stop is not None:
                    return
                if len(self.shown) > before or self.request.tells_greedy:
                    yield self.shown
                    self.record.resumed()
        self.end()

    def end(self) -> None:
        """End the text where its source has ended, at the last token that a server had room for."""
        self.stop = Stop(len(self.output.whole()), StopReason.MAX_TOKENS)

    def add(self, step: Step, after_token: Callable[[], None] = lambda: None) -> None:
        """Count a step and add its tokens, up to where a stop rule ends the text; call `after_token` after each."""
        self.record.count(step)
        self.top_tokens += step.top_tokens
        self.stop = self.extend(step, after_token) or self.rules.time_end(self.output, self.record.elapsed_ms())

    def growing(self, visible: str) -> Suggestion:
        """Return the visible part of the text; in a document, with the log-probabilities of all tokens so far."""
        if self.request.messages:  # a turn may be so long that they would take longer than its tokens
            return Suggestion(visible)
        over = replaced_by(visible, self.context) if self.request.filters else 0
        known, line = tuple(self.log_probabilities), self._line(visible)
        return Suggestion(visible, over, token_log_probabilities=known, ends=self.ends(visible), line=line)

    def suggestion(self, stop: Stop) -> Suggestion:
        """Return the text up to `stop`, before any filter."""
        log_probabilities = tuple(self.log_probabilities[: self.output.tokens_within(stop.length)])
        return Suggestion(
            text=self.output.whole()[: stop.length],
            log_probability=sum(log_probabilities),
            token_log_probabilities=log_probabilities,
            pieces=self.output.pieces(stop.length),
        )

    def ends(self, text: str) -> tuple[tuple[int, float], ...]:
        """Return `Suggestion.ends` for what the filters left of this attempt's text."""
        token_bytes = self.source.constraints.token_bytes
        return suggestion_ends(text, self.output, self.log_probabilities, self.top_tokens, token_bytes)

    def _line(self, visible: str) -> int:
        """Return `Suggestion.line`: what the visible part lacks of the text may tell that a line is complete."""
        text = self.output.growing()
        end = first_line(text if text.startswith(visible) else visible, self.context)
        return 0 if end > len(visible) else end

    def first_line(self) -> Suggestion | None:
        """Return the first line in line mode, once it is complete; lines that close its brackets may follow."""
        end = line_end(self.output.whole(), self.context) if self.context.mode is Mode.LINE else None
        return None if end is None else self.suggestion(Stop(end, StopReason.LINE_END))

    def branches(self) -> Iterator[Branch]:
        """Yield the branches of this attempt, which has ended, by falling probability."""
        tokens = 0 if self.stop is None else max(self.output.tokens_within(self.stop.length), 1)
        scored = self.log_probabilities[:tokens]
        if self.stop is not None and self.stop.reason is StopReason.STOP_TOKEN and not self.output.whole().strip():
            scored = [*self.log_probabilities, 0.0]  # a text may also begin in place of the stop token
        found: list[Branch] = []
        before = 0.0
        for start, (taken, top) in enumerate(zip(scored, self.top_tokens, strict=False)):
            for token, other in zip(top.tokens.tolist(), top.log_probabilities.tolist(), strict=True):
                if token != top.taken and token not in self.source.stop_ids and other >= taken + MIN_LOG_ODDS:
                    found.append(Branch(start, token, other, before + other, top.state))
            before += taken
        for branch in sorted(found, key=lambda branch: -branch.total):
            after = self.source.constraints.advance(branch.state, branch.token)  # slow, so only for requested branches
            if after is not None:
                yield replace(branch, state=after)

    def total(self) -> float:
        """Return the log-probability of the first line and of an end there; without a stop, that of the tokens so far.

        All of the likeliest tokens with the same end count: how many line breaks or blanks follow makes no difference.
        What follows the line does not count, or a head with a body would always lose against one without.
        """
        if self.stop is None or self.stop.reason not in OWN_ENDS:
            return sum(self.log_probabilities)
        end = self._end_of_first_line()
        if end >= len(self.top_tokens):
            return sum(self.log_probabilities[: end + 1])
        top = self.top_tokens[end]
        same = [self._end_of(token) == self._end_of(top.taken) for token in top.tokens.tolist()]
        taken = self.log_probabilities[end : end + 1] or [-math.inf]
        ends = float(np.logaddexp.reduce(top.log_probabilities[same], initial=-math.inf))
        return sum(self.log_probabilities[:end]) + max(ends, *taken)

    def most_total(self) -> float:
        """Return the maximum of `total` once this attempt ends: its first line may be its end, decided lines later."""
        return sum(self.log_probabilities[: self._end_of_first_line()])

    def _end_of_first_line(self) -> int:
        """Return the index of the token that ends the first line that is not blank, or the text, if it has one line."""
        text = self.output.whole() if self.stop is None else self.output.whole()[: self.stop.length]
        before = len(text) - len(text.lstrip())
        line, line_break, _ = text[before:].partition("\n")
        return self.output.end_token(before + len(line.rstrip()) if line_break or self.stop is None else len(text))

    def reweighted(self, weight: float) -> Attempt:
        """Return this attempt with log-probabilities as if its text were `weight` times as likely against all others.

        What its text gains or loses counts for each of its starts.
        """
        own = self.total()
        end = 0 if self.stop is None else self.output.end_token(self.stop.length)
        log_probabilities, top_tokens = list(self.log_probabilities), list(self.top_tokens)
        plain, before = 0.0, with_weight(0.0, own, weight)
        for index, top in enumerate(self.top_tokens[: end + 1]):
            likely = top.log_probabilities + (plain - before)
            if index < len(log_probabilities):
                plain += self.log_probabilities[index]
                after = with_weight(plain, own, weight)
                log_probabilities[index], before = after - before, after
                likely = np.where(top.tokens == top.taken, log_probabilities[index], likely)
            top_tokens[index] = replace(top, log_probabilities=likely)
        return replace(self, log_probabilities=log_probabilities, top_tokens=top_tokens)

    def _end_of(self, token: int) -> bytes | None:
        """Return what a token adds to its line before it ends it; None if it does not end it."""
        if token in self.source.stop_ids:
            return b""
        before, line_break, _ = self.source.constraints.token_bytes(token).partition(b"\n")
        return before.rstrip() if line_break else None

    def extend(self, step: Step, after_token: Callable[[], None] = lambda: None) -> Stop | None:
        """Add a step's tokens one by one, so that the text's end does not depend on how many tokens a step has."""
        for token, drafter, log_probability in zip(step.tokens, step.drafters, step.log_probabilities, strict=True):
            if token == NO_TOKEN or token in self.source.stop_ids:
                reason = StopReason.GRAMMAR if token == NO_TOKEN else StopReason.STOP_TOKEN
                return Stop(len(self.output.whole()), reason)
            self.output.extend(self.source.constraints.token_bytes(token), drafter)
            self.log_probabilities.append(log_probability)
            stop = self.rules.text_end(self.output.whole()) or self.rules.size_end(self.output)
            stop = stop or self.rules.unlikely_end(self.output, self.log_probabilities)
            if stop is not None:
                return stop
            after_token()
        return None


def with_weight(whole: float, part: float, weight: float) -> float:
    """Return the log-probability of a set of texts if a part of it, one text, becomes `weight` times as likely."""
    return whole + math.log1p((weight - 1.0) * math.exp(min(0.0, part - whole)))
