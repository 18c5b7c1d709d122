"""The filters that have the last word on a suggestion, one file each."""

from __future__ import annotations

from dataclasses import replace

from completion.postprocess.blanks import blanks
from completion.postprocess.block import block
from completion.postprocess.closers import closers, settled
from completion.postprocess.context import Context, Dropped, DropReason, Filter
from completion.postprocess.empty import empty
from completion.postprocess.first_line import first_line, unopened
from completion.postprocess.following_lines import following_lines, unrepeated
from completion.postprocess.indentation import indentation
from completion.postprocess.loops import loops, unlooped
from completion.postprocess.mid_word import mid_word, splits_word
from completion.postprocess.suffix_overlap import suffix_overlap, unoverlapped
from completion.postprocess.unfinished import unfinished, whole
from completion.request import Suggestion

_CUTS: tuple[Filter, ...] = (mid_word, first_line, loops, following_lines, block, suffix_overlap, closers)
_SHAPES: tuple[Filter, ...] = (indentation, blanks, empty)

FILTERS: tuple[Filter, ...] = (unfinished, *_CUTS, *_SHAPES)
"""In order: what forbids, what cuts, what reshapes, what is left of it.

Cuts of `mid_word` and `block` depend only on the text up to them and hold for every longer text. `first_line`, `loops`,
`following_lines`, `suffix_overlap` and `closers` may take back what an unfinished text had: each names, beside it, the
length that it keeps however the text goes on. `stable_prefix` puts these together.
"""

__all__ = [
    "FILTERS",
    "Context",
    "DropReason",
    "Dropped",
    "apply_filters",
    "splits_word",
    "stable_prefix",
]


def apply_filters(suggestion: Suggestion, context: Context) -> Suggestion | Dropped:
    """Send a finished suggestion through all filters in order; the first that drops it ends the way."""
    return _through(FILTERS, suggestion, context)


def stable_prefix(text: str, context: Context) -> str:
    """The part of an unfinished text that may be shown already.

    However the text goes on, `apply_filters` of the whole begins with it.

    Args:
        text: Everything generated so far, not filtered.
        context: The same that the finished text will be filtered with.
    """
    certain = text[: settled(text, context)]
    finished = certain[: whole(certain, context)]
    cut = _through(_CUTS, Suggestion(certain), context)
    if isinstance(cut, Dropped):
        return ""
    kept = (
        len(finished),
        unopened(finished, context),
        unlooped(finished),
        unrepeated(finished, context),
        unoverlapped(finished, context),
    )
    safe = cut.text[: min(kept)]
    safe = safe[: unoverlapped(safe, context)]  # where a repeated line is cut off later
    safe = safe[: settled(safe, context)].rstrip()
    shaped = _through(_SHAPES, replace(cut, text=safe), context)
    return "" if isinstance(shaped, Dropped) else shaped.text


def _through(filters: tuple[Filter, ...], suggestion: Suggestion, context: Context) -> Suggestion | Dropped:
    for one_filter in filters:
        result = one_filter(suggestion, context)
        if isinstance(result, Dropped):
            return result
        suggestion = result
    return suggestion
