"""Where a completion ends: the rules that look at its text, its size and its time after every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from completion.postprocess import Context, Dropped
from completion.postprocess.first_line import closed_end, line_end
from completion.postprocess.following_lines import following_lines
from completion.postprocess.loops import loops
from completion.request import CompletionRequest, Mode, StopReason, Suggestion
from completion.stopping.early_stop import EarlyStop
from completion.stopping.output_text import OutputText


@dataclass(frozen=True, slots=True)
class Stop:
    """An end that was found.

    Attributes:
        length: How many characters of the text belong to the completion.
        reason: The rule that found it.
    """

    length: int
    reason: StopReason


class StopRules:
    """The rules for one request; asked after every step with the text so far.

    Args:
        request: Names the bounds.
        context: The document around the cursor, and whether a line or a block is wanted.
        first: Log-probabilities of the first text's tokens where the rules are for another one.
    """

    def __init__(self, request: CompletionRequest, context: Context, first: Sequence[float] | None = None) -> None:
        self._request = request
        self._context = context
        self._first = first

    def beside(self, first: Sequence[float], max_tokens: int) -> StopRules:
        """The rules for a text that is offered beside a first one, with a bound of tokens of its own.

        Nobody waits for it, so it is given up when it becomes hopeless, unless the first one is no likelier so far.

        Args:
            first: Log-probabilities of the first text's tokens.
            max_tokens: The bound.
        """
        return StopRules(replace(self._request, max_tokens=max_tokens), self._context, first)

    def text_end(self, text: str) -> Stop | None:
        """The first place in the text so far where it must end, if there is one."""
        context = self._context
        if context.mode is Mode.LINE:
            line_stop = closed_end if self._request.filters else line_end
            end, reason = line_stop(text, context), StopReason.LINE_END
        else:
            end, reason = context.block_ends.after().end(text), StopReason.BLOCK_END
        return Stop(end, reason) if end is not None else self._repeated(text)

    def size_end(self, output: OutputText) -> Stop | None:
        """The end at a bound of tokens or bytes, if one is reached."""
        if output.tokens >= self._request.max_tokens:
            return Stop(len(output.whole()), StopReason.MAX_TOKENS)
        if output.size_bytes >= self._request.max_bytes:
            return Stop(len(output.whole()), StopReason.MAX_BYTES)
        return None

    def unlikely_end(self, output: OutputText, log_probabilities: Sequence[float]) -> Stop | None:
        """The end of a continuation that has become hopeless.

        Bare model text (no filters) is never given up, nor is what was asked for by a key: its user waits for it.
        """
        if self._is_hopeless(output.tokens, sum(log_probabilities)):
            return Stop(len(output.whole()), StopReason.UNLIKELY)
        return None

    def soon_unlikely(self, tokens: int, log_probability: float) -> bool:
        """Whether a text of so many tokens will be hopeless where the first bound counts, if it does not end before."""
        return self._is_hopeless(max(tokens, EarlyStop.shipped().least_tokens), log_probability)

    def _is_hopeless(self, tokens: int, log_probability: float) -> bool:
        if not self._request.filters or not EarlyStop.shipped().hopeless(tokens, log_probability):
            return False
        if self._first is None:
            return not self._request.invoked
        return log_probability < sum(self._first[:tokens])

    def time_end(self, output: OutputText, elapsed_ms: float) -> Stop | None:
        """The end at the time budget, if it is used up."""
        if 0 < self._request.time_budget_ms <= elapsed_ms:
            return Stop(len(output.whole()), StopReason.TIME_BUDGET)
        return None

    def _repeated(self, text: str) -> Stop | None:
        """The model goes round in circles, or goes on to write the suffix again; looked at line by line."""
        lines = Suggestion(text[: text.rfind("\n") + 1])
        unlooped = loops(lines, self._context)
        if len(unlooped.text) < len(lines.text):
            return Stop(len(unlooped.text), StopReason.REPETITION)
        kept = following_lines(lines, self._context)
        if isinstance(kept, Dropped):
            return Stop(0, StopReason.SUFFIX_OVERLAP)
        return Stop(len(kept.text), StopReason.SUFFIX_OVERLAP) if len(kept.text) < len(lines.text) else None
