"""How much may be missing between a suggestion and what follows it: what later lines close.

What the user has opened and not closed yet stays open. What a line opens itself (a call's first line, a block's head)
belongs to the suggestion with the lines that close it if those are few (`completion.ending.extent`). Otherwise
the text alone is a syntax error in the document, although it is what the user wants next. In a manual request, only a
likely line may open something; of an automatic suggestion, the client shows as much as is likely.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp

from completion.ending.context import Context
from completion.grammar.joining import Missing
from completion.request import StopReason, Suggestion
from completion.syntax.brackets import goes_on

MIN_LINE_PROBABILITY = 0.8
"""Minimum probability, under the model, of a line that may stay open, its end included."""
_LINE_ENDS = frozenset({StopReason.LINE_END, StopReason.MAX_LINES})


def as_before_code(context: Context) -> Context:
    """Return the context by which texts complete a document: before code on the cursor's line as in a manual request.

    That code is what the line goes on with. `int get()` is no method before ` put(int a) {`, whatever might follow it.
    """
    return replace(context, invoked=context.invoked or goes_on(context.line_after))


def may_be_missing(suggestion: Suggestion, reason: StopReason, context: Context) -> Missing:
    """Return how much may be missing after a finished suggestion.

    What the user has opened may stay open. What the text itself opens may not in a manual request, unless it is a
    complete and likely line, nor before code on the cursor's line.
    """
    is_line = goes_on(context.line_after)
    if not as_before_code(context).invoked or (not is_line and _is_likely_line(suggestion, reason)):
        return Missing.ANYTHING
    return Missing.NOTHING if context.scan(suggestion.text).open else Missing.AS_BEFORE


def _is_likely_line(suggestion: Suggestion, reason: StopReason) -> bool:
    scores = suggestion.token_log_probabilities
    is_line = reason in _LINE_ENDS and "\n" not in suggestion.text
    return is_line and bool(scores) and exp(sum(scores)) >= MIN_LINE_PROBABILITY
