"""A line that opens what only later lines close: a call's first line, a block's head.

Where they are short, they belong to the suggestion (`completion.postprocess.first_line`). Where not, the line alone is
a syntax error in the file as it stands, and yet it is what its writer wants next. So it
is judged by what it would be with the shortest text that closes it: kept where the document is sound then, and the
model sure of the line. Any other is cut back to what stands in the file as it is.
"""

from __future__ import annotations

from math import exp

from completion.postprocess import Context
from completion.request import StopReason, Suggestion
from completion.syntax.brackets import CLOSER_OF, scan

SURE = 0.8
"""The model's own probability of a line, its end included, from which it counts as sure of it."""


def closing(suggestion: Suggestion, reason: StopReason, context: Context) -> tuple[str, ...]:
    """Short texts that may close what a sure, whole line opens; none where the line is none of this kind."""
    text, scores = suggestion.text, suggestion.token_log_probabilities
    if reason is not StopReason.LINE_END or "\n" in text or not scores or exp(sum(scores)) < SURE:
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
