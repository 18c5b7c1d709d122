"""The filters that a finished suggestion passes, one file each."""

from __future__ import annotations

from dataclasses import replace

from completion.postprocess.blanks import blanks
from completion.postprocess.block import block
from completion.postprocess.block import stable_length as block_stable_length
from completion.postprocess.closers import closers, replaced_by
from completion.postprocess.closers import stable_length as closers_stable_length
from completion.postprocess.code_fence import code_fence
from completion.postprocess.code_fence import stable_length as code_fence_stable_length
from completion.postprocess.context import Context, Dropped, DropReason, Filter, StableLength
from completion.postprocess.empty import empty
from completion.postprocess.first_line import first_line
from completion.postprocess.first_line import stable_length as first_line_stable_length
from completion.postprocess.following_lines import following_lines
from completion.postprocess.following_lines import stable_length as following_lines_stable_length
from completion.postprocess.indentation import indentation
from completion.postprocess.loops import loops
from completion.postprocess.loops import stable_length as loops_stable_length
from completion.postprocess.mid_word import mid_word
from completion.postprocess.suffix_overlap import stable_length as suffix_overlap_stable_length
from completion.postprocess.suffix_overlap import suffix_overlap
from completion.postprocess.unfinished import stable_length as unfinished_stable_length
from completion.postprocess.unfinished import unfinished, whole_words
from completion.postprocess.unsafe import stable_length as unsafe_stable_length
from completion.postprocess.unsafe import unsafe
from completion.request import Suggestion

_CUTS: tuple[Filter, ...] = (mid_word, first_line, block, code_fence, loops, following_lines, suffix_overlap, closers)
_SHAPES: tuple[Filter, ...] = (indentation, blanks, empty)

FILTERS: tuple[Filter, ...] = (unsafe, unfinished, *_CUTS, *_SHAPES)
"""All filters in order: the safety filter, then filters that drop, cut and reshape, and the filter of empty text."""

_STABLE_LENGTHS: tuple[StableLength, ...] = (
    first_line_stable_length,
    block_stable_length,
    code_fence_stable_length,
    loops_stable_length,
    following_lines_stable_length,
    suffix_overlap_stable_length,
)
"""The functions that return how much of an unfinished text a cutting filter keeps however the text continues.

`mid_word` needs none, because its cut depends only on the text before the cut. `stable_prefix` applies
those of `unsafe`, `closers` and `unfinished` separately.
"""

__all__ = ["FILTERS", "Context", "DropReason", "Dropped", "apply_filters", "replaced_by", "stable_prefix"]


def apply_filters(suggestion: Suggestion, context: Context) -> Suggestion | Dropped:
    """Apply all filters to a finished suggestion in order; stop at the first that drops it."""
    return _through(FILTERS, suggestion, context)


def stable_prefix(text: str, context: Context, limit: int | None = None) -> str:
    """Return the stable prefix of an unfinished text: the part that may be shown already.

    However the text continues, the result of `apply_filters` for the finished text begins with it. It ends with a word.

    Args:
        text: Everything generated so far, not filtered.
        context: Context that the finished text will be filtered with.
        limit: Number of characters after which the text may still change; None if all of them stay.
    """
    limit = len(text) if limit is None else whole_words(text, limit)
    text = text[: unsafe_stable_length(text, context)]
    certain = text[: closers_stable_length(text, context)]
    finished = certain[: unfinished_stable_length(certain, context)]
    cut = _through(_CUTS, Suggestion(certain), context)
    if isinstance(cut, Dropped):
        return ""
    stable = min(limit, len(finished), *(length(finished, context) for length in _STABLE_LENGTHS))
    safe = cut.text[: whole_words(cut.text, stable)]
    safe = safe[: following_lines_stable_length(safe, context)]  # what else ends the text may leave such a line last
    # `following_lines` may have cut a repeated line.
    safe = safe[: whole_words(safe, suffix_overlap_stable_length(safe, context))]
    safe = safe[: closers_stable_length(safe, context)].rstrip()
    # Brackets that were in a regular expression count as soon as a filter has cut its end off.
    shaped = _through((closers, *_SHAPES), replace(cut, text=safe), context)
    return "" if isinstance(shaped, Dropped) else shaped.text


def _through(filters: tuple[Filter, ...], suggestion: Suggestion, context: Context) -> Suggestion | Dropped:
    for one_filter in filters:
        result = one_filter(suggestion, context)
        if isinstance(result, Dropped):
            return result
        suggestion = result
    return suggestion
