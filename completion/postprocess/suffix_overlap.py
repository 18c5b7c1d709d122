"""A suggestion that ends by writing the rest of the cursor's line again is cut before it."""

from __future__ import annotations

from dataclasses import replace

from completion.brackets import CLOSERS, scan
from completion.postprocess.context import Context
from completion.request import Suggestion

SHORTEST_OVERLAP = 3
"""Shorter ends are chance, a separator apart."""

_SEPARATORS = frozenset(",;:")


def suffix_overlap(suggestion: Suggestion, context: Context) -> Suggestion:
    """Cut where the text begins to repeat what stands after the cursor on its line, up to the text's end.

    Only where all brackets and strings that the text opened are closed again: `f(x)` before `)` keeps its closer.
    Closers alone are left to the filter that knows which bracket they belong to.
    """
    tail = context.line_after.strip()
    if not tail or set(tail) <= CLOSERS:
        return suggestion
    text = suggestion.text
    for start in range(len(text)):
        if _repeats(text[start:], tail, context) and _closed(text[:start], context):
            return replace(suggestion, text=text[:start])
    return suggestion


def unoverlapped(text: str, context: Context) -> int:
    """Length of the part of an unfinished text that the filter keeps however the text goes on."""
    tail = context.line_after.strip()
    starts = (i for i in range(len(text)) if tail and tail.startswith(text[i : i + len(tail)].rstrip()))
    return next(starts, len(text))


def _repeats(rest: str, tail: str, context: Context) -> bool:
    """Whether `rest` is a beginning of what follows, or begins with the whole tail and goes on as the document does."""
    rest = rest.rstrip()
    if rest in _SEPARATORS:
        return tail.startswith(rest)
    if not rest.startswith(tail[: len(rest)]):
        return False
    if len(rest) <= len(tail):
        wordless = not any(character.isalnum() for character in rest)
        return len(rest) >= SHORTEST_OVERLAP if not wordless else len(rest) >= 2 and rest == tail
    if not any(character.isalnum() for character in tail):
        return False
    beyond = rest[len(tail) :]
    first, line_break, second = beyond.partition("\n")
    below = context.following[0] if context.following else ""
    return len(tail) >= SHORTEST_OVERLAP and (not line_break or (not first.strip() and below.startswith(second)))


def _closed(text: str, context: Context) -> bool:
    result = scan(text, context.language, context.before.string)
    return not result.open and (not result.string or result.string == context.before.string)
