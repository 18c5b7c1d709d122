"""No remark on a complete line: a manual request at its end wants the line below."""

from __future__ import annotations

from completion.ending.context import Context
from completion.ending.rule import Ends, whole
from completion.syntax.table import row_of


def remark(text: str, context: Context) -> Ends:
    """End before a comment at the end of a line of code, if a manual request is made there."""
    in_code = not context.before.string and not context.before.comment and context.line_before.strip()
    if not context.invoked or not in_code or context.line_after:
        return whole(text)
    start = text.lstrip(" \t")
    openers = row_of(context.language).comments
    if any(start.startswith(one) for one in openers):
        return Ends(0, 0, over=True)
    return Ends(len(text), 0 if any(one.startswith(start) for one in openers) else len(text))
