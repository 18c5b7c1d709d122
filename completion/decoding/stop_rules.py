"""Stop rules: they check the text, the size, the probability and the time of an attempt after every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from completion.decoding.output_text import OutputText
from completion.ending.context import Context
from completion.ending.decision import stop
from completion.ending.early_stop import EarlyStop
from completion.ending.extent import line_end
from completion.ending.rule import Stop
from completion.request import CompletionRequest, Mode, StopReason

MAX_BLANK_TOKENS = 8
"""Maximum number of tokens of blanks that a text begins with. Any indentation has fewer."""


class StopRules:
    """The stop rules of one attempt.

    Args:
        context: The document around the cursor, and whether to complete a line or a block.
        first: For a branch, the log-probabilities of the first attempt's tokens.
    """

    def __init__(self, request: CompletionRequest, context: Context, first: Sequence[float] | None = None) -> None:
        self._request = request
        self._context = context
        self._first = first

    def for_branch(self, first: Sequence[float], max_tokens: int) -> StopRules:
        """Return the rules of a branch of this attempt.

        A branch ends when it becomes hopeless, even in a manual request, unless the first attempt is no likelier. It
        has at most `max_tokens` new tokens.
        """
        return StopRules(replace(self._request, max_tokens=max_tokens), self._context, first)

    def text_end(self, text: str) -> Stop | None:
        """Return the first end by a rule about the text, None if no rule applies; a conversation has one rule."""
        if self._request.messages:
            return self._turn_end(text)
        found = self._own_end(text)
        limit = self._lines_end(text)
        return Stop(limit, StopReason.MAX_LINES) if limit < (found.length if found else len(text)) else found

    def _turn_end(self, text: str) -> Stop | None:
        """Return the end after the start of a turn's last line; None while there is none."""
        line = self._request.last_line
        at = f"\n{text}".find(f"\n{line}") if line else -1
        return Stop(at + len(line), StopReason.BLOCK_END) if at >= 0 else None

    def _own_end(self, text: str) -> Stop | None:
        """Return the end by a rule, without filters that of the line or block; None if there is none."""
        if self._request.filters:
            return stop(text, self._context)
        if self._context.mode is Mode.LINE:
            end, reason = line_end(text, self._context), StopReason.LINE_END
        else:
            end, reason = self._context.block_end(text), StopReason.BLOCK_END
        return None if end is None else Stop(end, reason)

    def _lines_end(self, text: str) -> int:
        """Return the offset where the last allowed line ends, or the text's length."""
        lines, end = 0, -1
        while self._request.max_lines and (end := text.find("\n", start := end + 1)) >= 0:
            lines += not text[start:end].isspace() and end > start
            if lines == self._request.max_lines:
                return end
        return len(text)

    def size_end(self, output: OutputText) -> Stop | None:
        """Return the end at the maximum number of tokens or bytes, or of blanks alone; None if none is reached.

        Where a model has nothing to write on an indented line, it may write blanks up to any maximum.
        """
        if output.new_tokens >= self._request.max_tokens:
            return Stop(len(output.whole()), StopReason.MAX_TOKENS)
        if output.size_bytes >= self._request.max_bytes:
            kept = output.whole().encode()[: self._request.max_bytes].decode("utf-8", "ignore")
            return Stop(len(kept), StopReason.MAX_BYTES)
        if self._request.filters and output.whole().isspace():
            blanks = output.tokens - output.tokens_within(0)
            return Stop(len(output.whole()), StopReason.REPETITION) if blanks > MAX_BLANK_TOKENS else None
        return None

    def unlikely_end(self, output: OutputText, log_probabilities: Sequence[float]) -> Stop | None:
        """Return the end of an attempt that has become hopeless, None if it has not.

        An attempt without filters never ends this way, nor does the first attempt of a manual request.
        """
        if self._is_hopeless(output.tokens, sum(log_probabilities)):
            return Stop(len(output.whole()), StopReason.UNLIKELY)
        return None

    def soon_unlikely(self, tokens: int, log_probability: float) -> bool:
        """Return whether an attempt will be hopeless at the first bound unless it ends before, however it goes on."""
        return self._is_hopeless(max(tokens, EarlyStop.shipped().min_tokens), log_probability)

    def _is_hopeless(self, tokens: int, log_probability: float) -> bool:
        if not self._request.filters or not EarlyStop.shipped().is_hopeless(tokens, log_probability):
            return False
        if self._first is None:
            return not self._request.invoked
        return log_probability < sum(self._first[:tokens])

    def time_end(self, output: OutputText, elapsed_ms: float) -> Stop | None:
        """Return the end at the time budget, None if it is not used up."""
        if 0 < self._request.time_budget_ms <= elapsed_ms:
            return Stop(len(output.whole()), StopReason.TIME_BUDGET)
        return None
