"""Removes redundant whitespace from both ends of a suggestion, and a comma that must not be its end."""

from __future__ import annotations

from dataclasses import replace

from completion.postprocess.context import Context, Dropped, DropReason
from completion.request import Suggestion
from completion.syntax.brackets import CLOSERS

_NO_LAST_COMMA = frozenset({"json", "sql"})
"""Languages in which a comma before a closing bracket is an error."""


def blanks(suggestion: Suggestion, context: Context) -> Suggestion | Dropped:
    """Remove leading blanks that repeat a blank before the cursor, and trailing blanks and line breaks.

    With text after the cursor on its line, trailing indentation stays; trailing blanks go only if that text begins with
    a blank. Before a line that begins with a closing bracket, a comma at the end goes where it would be an error; a
    suggestion of nothing else is dropped.
    """
    text = suggestion.text
    if context.line_before[-1:] in (" ", "\t") and context.line_before.strip() and not context.before.string:
        text = text.lstrip(" \t")
    after = context.line_after[suggestion.replace_after :]
    bare = text.rstrip(" \t")
    if not after.strip():
        text = text.rstrip()
        below = context.line_below.lstrip()
        if text.endswith(",") and context.language in _NO_LAST_COMMA and below[:1] in CLOSERS:
            in_string = context.scan(text).string
            text = text if in_string else text.removesuffix(",")
            if not text:
                return Dropped(DropReason.LAST_COMMA)
    elif after[0] in " \t" and not bare.endswith("\n"):
        text = bare
    return replace(suggestion, text=text)
