"""Blanks at the ends of a suggestion: no second blank after a blank, none before a line's end."""

from __future__ import annotations

from dataclasses import replace

from completion.postprocess.context import Context
from completion.request import Suggestion


def blanks(suggestion: Suggestion, context: Context) -> Suggestion:
    """Take off a leading blank that the document has already, and trailing blanks and line breaks.

    Before text on the cursor's line what ends the suggestion may be needed: that text's indentation stays, and a blank
    unless the text begins with one.
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
