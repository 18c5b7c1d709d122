"""Ends a suggestion with the block around the cursor, and before a word that ends a block which goes on below."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from completion.postprocess.context import Context, Dropped, DropReason
from completion.request import Mode, Suggestion
from completion.syntax.indent_style import depth
from completion.syntax.line_roles import closes_words, may_close_words


def block(suggestion: Suggestion, context: Context) -> Suggestion | Dropped:
    """Cut in block mode after the end of the block, and before a word that ends a block which goes on below.

    Such a word begins the first line that is indented less than the next line below the cursor: what it ends began
    before the cursor, and ends further below.
    """
    text = suggestion.text
    if context.mode is Mode.BLOCK:
        text = text[: context.block_ends.after().end(text)]
    start = _surplus_end(text, context, closes_words)
    if start is not None:
        text = text[:start].rstrip()
        if not text:
            return Dropped(DropReason.DOUBLED_CLOSER)
    return suggestion if text == suggestion.text else replace(suggestion, text=text)


def stable_length(text: str, context: Context) -> int:
    """Return the length of the part of an unfinished text that the filter keeps however the text continues."""
    start = _surplus_end(text, context, may_close_words)
    return len(text) if start is None else start


def _surplus_end(text: str, context: Context, ends: Callable[[str, str], bool]) -> int | None:
    """Return the offset of the first line that ends, by `ends`, a block which goes on below; None if there is none."""
    least = depth(context.line_below)
    if not least or context.line_after.strip() or context.before.string or context.before.comment:
        return None
    offset = 0
    for line in text.split("\n"):
        whole = line if offset else context.line_before + line
        if whole.strip() and depth(whole) < least:
            begins = offset > 0 or not context.line_before.strip()
            return offset if begins and ends(whole, context.language) else None
        offset += len(line) + 1
    return None
