"""Lines that open brackets or blocks which only later lines close: a call's first line, a block's head.

If those lines are few, they belong to the suggestion (`completion.postprocess.first_line`). Otherwise the line alone is
a syntax error in the document, although it is what the user wants next. So it is checked together with the shortest
text that would close it. It is kept if the document then has no new syntax error and the model is certain of the line;
otherwise it is cut.
"""

from __future__ import annotations

from math import exp

from completion.postprocess import Context
from completion.request import StopReason, Suggestion
from completion.syntax.brackets import CLOSER_OF, scan

MIN_LINE_PROBABILITY = 0.8
"""Minimum probability, under the model, of a line that may stay open, its end included."""
_LINE_ENDS = frozenset({StopReason.LINE_END, StopReason.MAX_LINES})


def closing_texts(suggestion: Suggestion, reason: StopReason, context: Context) -> tuple[str, ...]:
    """Return short texts that would close what a line opens; none unless the line is complete and likely."""
    text, scores = suggestion.text, suggestion.token_log_probabilities
    if reason not in _LINE_ENDS or "\n" in text or not scores or exp(sum(scores)) < MIN_LINE_PROBABILITY:
        return ()
    found = scan(text, context.language, context.before.string)
    if found.string or found.comment:
        return ()
    if found.open:
        closers = "".join(CLOSER_OF[bracket.character] for bracket in reversed(found.open))
        return closers, f"_{closers}", f"{closers};", f"_{closers};"
    if context.language == "python" and text.rstrip().endswith(":"):
        line = context.line_before + text
        return (f"\n{line[: len(line) - len(line.lstrip())]}{context.indent.unit or '    '}pass",)
    return ()
