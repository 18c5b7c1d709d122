"""Turns an attempt into a suggestion: applies the filters, then checks the syntax with the text after the cursor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp

from completion.ending.context import Context
from completion.ending.decision import committed, finished, replaced_by
from completion.ending.rule import DropReason
from completion.grammar.constraint import GrammarConstraint
from completion.grammar.joining import Missing
from completion.request import CompletionRequest, GrammarMode, StopReason, Suggestion
from completion.syntax.brackets import goes_on

_CUT_SHORT = frozenset({StopReason.MAX_TOKENS, StopReason.MAX_BYTES, StopReason.TIME_BUDGET, StopReason.UNLIKELY})
_LINE_ENDS = frozenset({StopReason.LINE_END, StopReason.MAX_LINES})
MIN_LINE_PROBABILITY = 0.8
"""Minimum probability, under the model, of a line that may stay open in a manual request, its end included."""


@dataclass(frozen=True, slots=True)
class Finisher:
    """Turns the attempts of one request into suggestions.

    Attributes:
        request: The request, with plain line feeds.
        grammar: The request's constraint, or the reason why it has none.
        forced: Bytes of the healed run, which the grammar reads before the suggestion.
    """

    request: CompletionRequest
    context: Context
    grammar: GrammarConstraint
    forced: bytes

    def finish(self, raw: Suggestion, reason: StopReason, shown: str = "") -> Suggestion | DropReason:
        """Return the suggestion that a finished text becomes, or the reason why it is dropped.

        Nothing cuts the part that was shown before, unless the text has another beginning.
        """
        result: Suggestion | DropReason = raw
        if self.request.filters:
            result = finished(raw, replace(self.context, cut_short=reason in _CUT_SHORT))
        if self.request.grammar is GrammarMode.STRICT and isinstance(result, Suggestion):
            result = self._cut_by_grammar(result, reason)
        return committed(result, raw, shown, self.context)

    def opening_line(self, line: Suggestion) -> Suggestion | None:
        """Return a complete line with open brackets, if it may be offered without the lines that close them."""
        alone = self.finish(line, StopReason.LINE_END)
        filtered = finished(line, self.context)
        return alone if isinstance(alone, Suggestion) and alone == filtered else None

    def visible_part(self, stable: str, shown: str) -> str:
        """Return the part of an unfinished text that adds no syntax error to the document.

        Unless the request is manual or code follows the cursor on its line, it may open what the text closes later: the
        first line of a block is there long before the last.

        No filter can take back the stable prefix. The result starts with what was shown before.
        """
        if self.request.grammar is not GrammarMode.STRICT or len(stable) <= len(shown):
            return stable
        written = stable.encode()
        known = len(self.forced) + len(shown.encode())
        missing = Missing.NOTHING if self._is_bound and self.context.scan(stable).open else self._missing_at_most
        cut = self.grammar.growing_cut(self.forced + written, known, missing)
        return _cut_back(written, cut - len(self.forced))

    def _cut_by_grammar(self, suggestion: Suggestion, reason: StopReason) -> Suggestion | DropReason:
        """Cut a filtered suggestion to its longest start that adds no syntax error to the document."""
        written = suggestion.text.encode()
        replaced = len(self.request.suffix[: suggestion.replace_after].encode())
        # the text after the cursor can be broken without it, for example by a missing semicolon
        missing, tolerant = self._may_be_missing(suggestion, reason), not self.context.invoked
        cut = self.grammar.longest_passing_cut(self.forced + written, replaced, missing, tolerant=tolerant)
        kept = _cut_back(written, cut - len(self.forced))
        if kept == suggestion.text:
            return suggestion
        if not kept.strip():
            return DropReason.SYNTAX
        over = min(suggestion.replace_after, replaced_by(kept, self.context))  # not a closer that was cut off
        kept = kept if self.context.line_after.strip() else kept.rstrip()  # without the line end, which is there
        return replace(suggestion, text=kept, replace_after=over)

    @property
    def _is_bound(self) -> bool:
        """Whether a text must close what it opens itself: in a manual request, and before code on the cursor's line.

        That code is what the line goes on with. `int get()` is no method before ` put(int a) {`.
        """
        return self.context.invoked or goes_on(self.context.line_after)

    @property
    def _missing_at_most(self) -> Missing:
        return Missing.AS_BEFORE if self._is_bound else Missing.ANYTHING

    def _may_be_missing(self, suggestion: Suggestion, reason: StopReason) -> Missing:
        """Return how much may be missing after a finished suggestion.

        What the user has opened may stay open. What the text itself opens may if it is a complete and likely line.
        """
        scores = suggestion.token_log_probabilities
        is_line = reason in _LINE_ENDS and "\n" not in suggestion.text and not goes_on(self.context.line_after)
        if is_line and scores and exp(sum(scores)) >= MIN_LINE_PROBABILITY:
            return Missing.ANYTHING
        opens = self._is_bound and self.context.scan(suggestion.text).open
        return Missing.NOTHING if opens else self._missing_at_most


def _cut_back(written: bytes, length: int) -> str:
    """Return the complete characters of the first `length` bytes."""
    return written[: max(0, length)].decode("utf-8", "ignore")
