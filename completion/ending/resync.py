"""Ends a text where it meets what follows the cursor on its line, and says what it replaces there."""

from __future__ import annotations

from completion.ending.balance import joint
from completion.ending.context import Context
from completion.ending.rest_of_line import rest_of_line
from completion.ending.rule import Ends
from completion.ending.tags import end_of_tags
from completion.syntax.lexicon import lexicon_of


def resync(text: str, context: Context) -> Ends:
    """End before the rest of the line and before closers that the document has further on.

    A closer directly after the cursor is replaced. In a comment, all stays but the rest of the line.
    """
    begun = _begun(text, context)
    ends = rest_of_line(text, context)
    kept, sure = text[: ends.maybe], min(ends.sure, len(text) - begun)
    if not context.before.comment:
        ended = end_of_tags(kept, context)
        kept, sure = kept[: ended.maybe], min(sure, ended.sure)
    inside = context.before.string
    if begun and inside and context.line_after.startswith(inside) and context.scan(text).string == inside:
        kept = kept[: len(text) - begun]  # the document's delimiter would end one quote too early
    length, replaces = joint(kept, context)
    if length < len(kept) and not replaces:
        length = rest_of_line(kept[:length], context).maybe  # it was no end of the text before
    return Ends(length, min(length, sure), replaces=replaces)


def _begun(text: str, context: Context) -> int:
    """Return the length of what may become a delimiter of several characters at the end of a text; one may be whole."""
    if context.within_comment(text) or text[-1:].isalnum() or text[-1:].isspace():
        return 0
    found, strings = context.scan(text), lexicon_of(context.language).strings
    ends = [
        one[:count]
        for one in ([found.string] if found.string else strings)
        for count in range(1 + (not found.string and one[0] in strings), len(one))  # one quote begins a string, too
    ]
    return 0 if found.comment else max((len(each) for each in ends if text.endswith(each)), default=0)
