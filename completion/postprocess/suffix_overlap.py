"""A suggestion that ends by writing the rest of the cursor's line again is cut before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from completion.brackets import CLOSER_OF, CLOSERS, Bracket, scan
from completion.postprocess.context import Context
from completion.request import Suggestion

SHORTEST_OVERLAP = 3
"""Shorter ends are chance, a separator apart."""

_SEPARATORS = frozenset(",;:")


def suffix_overlap(suggestion: Suggestion, context: Context) -> Suggestion:
    """Cut where the text begins to repeat what stands after the cursor on its line, up to the text's end.

    Only where that leaves no more brackets unpaired: `f(x)` before `)` keeps its closer. Closers alone are left to the
    filter that knows which bracket they belong to.
    """
    tail = context.line_after.strip()
    if not tail or set(tail) <= CLOSERS:
        return suggestion
    text = suggestion.text
    for start in range(len(text)):
        if _repeats(text[start:], tail, context) and _pairs(text, start, context):
            return replace(suggestion, text=before_rest(text, start, context))
    return suggestion


def before_rest(text: str, start: int, context: Context) -> str:
    """The text before `start`, where the rest of the cursor's line begins, without the blanks that this has itself."""
    after = context.line_after
    return text[:start].removesuffix(after[: len(after) - len(after.lstrip())])


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


def _pairs(text: str, start: int, context: Context) -> bool:
    """Whether the document's brackets pair as well with the text up to `start` as with all of it."""
    string = scan(text[:start], context.language, context.before.string).string
    if string and string != context.before.string:
        return False
    return _unpaired(text[:start], context) <= _unpaired(text, context)


def _unpaired(text: str, context: Context) -> int:
    """Number of brackets around the cursor that have no partner once the text stands there."""
    found = scan(text, context.language, context.before.string)
    stack = [bracket.character for bracket in context.before.open]
    alone = _close(stack, found.unopened)
    stack += [bracket.character for bracket in found.open]
    alone += _close(stack, context.after.unopened)
    return alone + len(stack)


def _close(stack: list[str], closers: Sequence[Bracket]) -> int:
    """Take off what the closers close; gives how many close nothing."""
    alone = 0
    for closer in closers:
        if stack and CLOSER_OF[stack[-1]] == closer.character:
            stack.pop()
        else:
            alone += 1
    return alone
