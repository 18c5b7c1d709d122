"""Drops suggestions inside a word: the word's tail would follow the inserted text."""

from __future__ import annotations

from completion.postprocess.context import Context, Dropped, DropReason
from completion.request import Suggestion


def splits_word(context: Context) -> bool:
    """Return whether the cursor is inside or directly before a word, unless the request is manual."""
    return not context.invoked and _is_word(context.line_after[:1])


def mid_word(suggestion: Suggestion, context: Context) -> Suggestion | Dropped:
    """Drop a suggestion that splits a word."""
    return Dropped(DropReason.MID_WORD) if splits_word(context) else suggestion


def _is_word(character: str) -> bool:
    return character.isalnum() or character in ("_", "$") if character else False
