"""Drops suggestions inside a word: the word's tail would follow the inserted text."""

from __future__ import annotations

from completion.postprocess.context import Context, Dropped, DropReason
from completion.request import Suggestion
from completion.syntax.literals.styles import has_sentences


def mid_word(suggestion: Suggestion, context: Context) -> Suggestion | Dropped:
    """Drop a suggestion inside or directly before a word, unless the request is manual."""
    after = context.line_after[:1]
    is_word = after.isalnum() or after == "_" or (after == "$" and not has_sentences(context.language))  # or formulas
    return Dropped(DropReason.MID_WORD) if is_word and not context.invoked else suggestion
