"""Removes redundant whitespace from both ends of a suggestion."""

from __future__ import annotations

from dataclasses import replace

from completion.postprocess.context import Context
from completion.request import Suggestion


def blanks(suggestion: Suggestion, context: Context) -> Suggestion:
    """Remove leading blanks that repeat a blank before the cursor, and trailing blanks and line breaks.

    With text after the cursor on its line, trailing indentation stays; trailing blanks go only if that text begins with
    a blank.
    """
    text = suggestion.text
    if context.line_before[-1:] in (" ", "\t") and context.line_before.strip() and not context.before.string:
        text = text.lstrip(" \t")
    after = context.line_after[suggestion.replace_after :]
    bare = text.rstrip(" \t")
    if not after.strip():
        text = text.rstrip()
    elif after[0] in " \t" and not bare.endswith("\n"):
        text = bare
    return replace(suggestion, text=text)
