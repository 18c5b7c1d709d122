"""One text being written for a request: the greedy one, or one that branches off from it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from completion.cancellation import CancelToken
from completion.decoding.constraints import ConstraintState
from completion.decoding.decoder import NO_TOKEN, Decoder, Rivals, Step
from completion.decoding.run_record import RunRecord
from completion.postprocess import Context, stable_prefix
from completion.postprocess.first_line import line_end
from completion.request import CompletionRequest, Mode, StopReason, Suggestion
from completion.stopping.output_text import OutputText
from completion.stopping.rules import Stop, StopRules

LEAST_ODDS = math.log(1 / 50)
"""Against the token that was taken: what is less likely is no suggestion, and would cost as much as a likely one."""


@dataclass(frozen=True, slots=True)
class Branch:
    """Another token that the model might have written.

    Attributes:
        start: How many tokens of the text stand before it.
        token: The other token.
        log_probability: Of the token.
        state: Where the text stands within the constraints behind it.
    """

    start: int
    token: int
    log_probability: float
    state: ConstraintState


@dataclass(slots=True, eq=False)
class Attempt:
    """Writes one text until a stop rule ends it.

    Attributes:
        request: What was asked, line ends normalised.
        context: The document around the cursor.
        decoder: Gives the tokens: all of them, or those behind a branch's own first one.
        output: The text.
        rules: Where it ends.
        record: Counts steps and time of the whole request.
        log_probabilities: Of each token of the text, what a branch shares with the first text included.
        rivals: What else each token might have been that the decoder gave.
        stop: Where the text ended; None while it is written.
    """

    request: CompletionRequest
    context: Context
    decoder: Decoder
    output: OutputText
    rules: StopRules
    record: RunRecord
    log_probabilities: list[float] = field(default_factory=list)
    rivals: list[Rivals] = field(default_factory=list)
    stop: Stop | None = None

    def stream(self, cancel: CancelToken) -> Iterator[str]:
        """Write the text; gives the part that may be shown whenever it has grown, or a line of the text is whole.

        Raises:
            CancelledError: Between two steps.
        """
        shown, lines = "", 0
        for step in self.decoder.steps(cancel):
            self.add(step)
            if self.stop is not None:
                return
            growing = self.output.growing()
            visible = stable_prefix(growing, self.context) if self.request.filters else growing
            if len(visible) > len(shown) or growing.count("\n") > lines:
                shown, lines = visible, growing.count("\n")
                yield visible

    def add(self, step: Step) -> None:
        """Add a step's tokens to the text, as far as no stop rule ends it."""
        self.record.count(step)
        self.rivals += step.rivals
        self.stop = self.extend(step) or self.rules.time_end(self.output, self.record.elapsed_ms())

    def growing(self, visible: str) -> Suggestion:
        """What may be shown of the text so far, with the log-probabilities of everything so far."""
        return Suggestion(visible, token_log_probabilities=tuple(self.log_probabilities))

    def text(self, stop: Stop) -> Suggestion:
        """Everything that was written up to its end."""
        log_probabilities = tuple(self.log_probabilities[: self.output.tokens_within(stop.length)])
        return Suggestion(
            text=self.output.whole()[: stop.length],
            log_probability=sum(log_probabilities),
            token_log_probabilities=log_probabilities,
            pieces=self.output.pieces(stop.length),
        )

    def line(self) -> Suggestion | None:
        """In line mode the first line, once it is whole: more may follow that closes its brackets."""
        end = line_end(self.output.whole(), self.context) if self.context.mode is Mode.LINE else None
        return None if end is None else self.text(Stop(end, StopReason.LINE_END))

    def branches(self) -> Iterator[Branch]:
        """Other texts, by the first token in which they differ from this one, which has ended; likeliest first."""
        tokens = 0 if self.stop is None else max(self.output.tokens_within(self.stop.length), 1)
        found: list[tuple[float, Branch]] = []
        before = 0.0
        for start, (taken, rivals) in enumerate(zip(self.log_probabilities[:tokens], self.rivals, strict=False)):
            for token, other in zip(rivals.tokens.tolist(), rivals.log_probabilities.tolist(), strict=True):
                if token != rivals.taken and token not in self.decoder.ends and other >= taken + LEAST_ODDS:
                    found.append((before + other, Branch(start, token, other, rivals.state)))
            before += taken
        for _, branch in sorted(found, key=lambda candidate: -candidate[0]):
            behind = self.decoder.constraints.advance(branch.state, branch.token)  # when it is asked for: it takes time
            if behind is not None:
                yield replace(branch, state=behind)

    def extend(self, step: Step) -> Stop | None:
        """Add a step's tokens to the text, one by one: where it ends must not depend on how they came."""
        for token, drafter, log_probability in zip(step.tokens, step.drafters, step.log_probabilities, strict=True):
            if token == NO_TOKEN or token in self.decoder.ends:
                reason = StopReason.GRAMMAR if token == NO_TOKEN else StopReason.STOP_TOKEN
                return Stop(len(self.output.whole()), reason)
            self.output.extend(self.decoder.constraints.token_bytes(token), drafter)
            self.log_probabilities.append(log_probability)
            stop = self.rules.text_end(self.output.whole()) or self.rules.size_end(self.output)
            stop = stop or self.rules.unlikely_end(self.output, self.log_probabilities)
            if stop is not None:
                return stop
        return None
