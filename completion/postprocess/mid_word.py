"""Drops suggestions inside a word: the word's tail would follow the inserted text."""

from __future__ import annotations

from completion.postprocess.context import Context, Dropped, DropReason
from completion.request import Suggestion


def mid_word(suggestion: Suggestion, context: Context) -> Suggestion | Dropped:
    """Drop a suggestion inside or directly before a word, unless the request is manual."""
    splits = not context.invoked and _is_word(context.line_after[:1])
    return Dropped(DropReason.MID_WORD) if splits else suggestion


def _is_word(character: str) -> bool:
    return character.isalnum() or character in ("_", "$") if character else False
