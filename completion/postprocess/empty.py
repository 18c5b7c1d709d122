"""Drops suggestions that insert nothing."""

from __future__ import annotations

from completion.postprocess.context import Context, Dropped, DropReason
from completion.request import Suggestion


def empty(suggestion: Suggestion, context: Context) -> Suggestion | Dropped:
    """Drop empty and blank suggestions, and those that repeat exactly what they replace."""
    if not suggestion.text:
        return Dropped(DropReason.EMPTY)
    if not suggestion.text.strip():
        return Dropped(DropReason.BLANK)
    if suggestion.text == context.line_after[: suggestion.replace_after]:
        return Dropped(DropReason.DOUBLED_CLOSER)
    return suggestion
