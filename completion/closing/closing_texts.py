"""What may stay open at the end of a suggestion, because later lines close it: brackets, blocks, a string, a comment.

What the user has opened and not closed yet stays open. What a line opens itself (a call's first line, a block's head)
belongs to the suggestion with the lines that close it if those are few (`completion.ending.extent`). Otherwise
the text alone is a syntax error in the document, although it is what the user wants next. In both cases the text is
checked together with the shortest text that would close what is open. It is kept if the document then has no new syntax
error; otherwise it is cut. In a manual request, only a likely line may open something; of an automatic suggestion, the
client shows as much as is likely.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp

from completion.closing.endings import announced, endings, still_to_close
from completion.ending.context import Context
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


def closing_texts(suggestion: Suggestion, reason: StopReason, context: Context) -> tuple[str, ...]:
    """Return short texts of which one would close what is open after a finished text.

    What the user has opened may stay open. What the text itself opens may not in a manual request, unless it is a
    complete and likely line, nor before code on the cursor's line; then nothing is returned.
    """
    text, context = suggestion.text, as_before_code(context)
    may_open = not context.invoked or (_is_likely_line(suggestion, reason) and not goes_on(context.line_after))
    if not may_open:
        opens_block = context.language == "python" and text.rstrip().endswith(":") and not still_to_close(text, context)
        if opens_block or context.scan(text).open:
            return ()
    return endings(text, context)


def announced_texts(suggestion: Suggestion, context: Context) -> tuple[str, ...]:
    """Return short texts of which one, in place of the rest of the cursor's line, would be what the text announces.

    In a manual request, and before code on the cursor's line, the user has begun the line that does so, such as
    `#[err`, and the text opens nothing.
    """
    text, context = suggestion.text, as_before_code(context)
    is_begun = bool(context.line_before.strip()) and "\n" not in text
    if context.invoked and (not is_begun or context.scan(text).open):
        return ()
    return announced(text, context, suggestion.replace_after)


def _is_likely_line(suggestion: Suggestion, reason: StopReason) -> bool:
    scores = suggestion.token_log_probabilities
    is_line = reason in _LINE_ENDS and "\n" not in suggestion.text
    return is_line and bool(scores) and exp(sum(scores)) >= MIN_LINE_PROBABILITY
