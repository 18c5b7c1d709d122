"""Nothing is offered inside a word: its tail would stand behind whatever is inserted."""

from __future__ import annotations

from completion.postprocess.context import Context, Dropped, DropReason
from completion.request import Suggestion


def splits_word(context: Context) -> bool:
    """Whether the cursor stands inside a word or right before one on its line.

    This depends on the document alone, so that the engine can ask before it computes anything. Closers, punctuation
    and blanks after the cursor are no word.
    """
    return not context.invoked and _is_word(context.line_after[:1])


def mid_word(suggestion: Suggestion, context: Context) -> Suggestion | Dropped:
    """Drop what would be inserted before the tail of a word."""
    return Dropped(DropReason.MID_WORD) if splits_word(context) else suggestion


def _is_word(character: str) -> bool:
    return character.isalnum() or character in ("_", "$") if character else False
