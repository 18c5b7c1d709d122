"""Ends a suggestion in block mode with the block around the cursor."""

from __future__ import annotations

from dataclasses import replace

from completion.postprocess.context import Context
from completion.request import Mode, Suggestion


def block(suggestion: Suggestion, context: Context) -> Suggestion:
    """Cut after the end of the block; in line mode, return the suggestion unchanged."""
    if context.mode is not Mode.BLOCK:
        return suggestion
    end = context.block_ends.after().end(suggestion.text)
    return suggestion if end is None else replace(suggestion, text=suggestion.text[:end])
