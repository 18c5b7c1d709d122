"""In block mode a suggestion ends with the block that the cursor stands in."""

from __future__ import annotations

from dataclasses import replace

from completion.postprocess.context import Context
from completion.request import Mode, Suggestion


def block(suggestion: Suggestion, context: Context) -> Suggestion:
    """Cut where the block's indentation ends; line mode is left as it is."""
    if context.mode is not Mode.BLOCK:
        return suggestion
    end = context.block_ends.after().end(suggestion.text)
    return suggestion if end is None else replace(suggestion, text=suggestion.text[:end])
