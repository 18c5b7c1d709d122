"""Narrowing: what of a suggestion is left to insert after the user typed on, and what it then replaces."""

from __future__ import annotations

from dataclasses import dataclass

from completion.request import Suggestion

CLOSERS = frozenset(")]}>\"'`")
"""Characters that editors add by themselves after the cursor when their opener is typed."""

MOST_CLOSERS = 3
"""How many closers an editor is expected to add or step over between two requests."""


@dataclass(frozen=True, slots=True)
class Situation:
    """The text around a cursor, whole, with line ends as the document has them."""

    prefix: str
    suffix: str


@dataclass(frozen=True, slots=True)
class Remainder:
    """What of a suggestion is left to insert at a situation's cursor.

    Attributes:
        index: Which suggestion of the generation.
        text: What to insert there.
        replace_after: How many code points after that cursor it replaces.
    """

    index: int
    text: str
    replace_after: int


def remainder(
    index: int, suggestion: Suggestion, start: Situation, now: Situation, typed: str, *, grows: bool
) -> Remainder | None:
    """Return what of a suggestion is left to insert; None if it no longer fits, or nothing of it is left.

    Args:
        index: Number of the suggestion in its generation.
        suggestion: Its text so far.
        start: Where it was requested.
        now: Where the cursor is.
        typed: What was typed in between.
        grows: Whether its text may still grow.
    """
    if not suggestion.text.startswith(typed):
        catching_up = grows and typed.startswith(suggestion.text)
        return Remainder(index, "", 0) if catching_up else None
    text = suggestion.text[len(typed) :]
    if not text and not grows:
        return None
    replaced = _replaced(start, now, suggestion.replace_after, text)
    return None if replaced is None else Remainder(index, text, replaced)


def typed_since(start: Situation, now: Situation) -> str | None:
    """What was typed since the start; None if anything else changed."""
    if not now.prefix.startswith(start.prefix) or _closer_difference(start, now) is None:
        return None
    return now.prefix[len(start.prefix) :]


def _closer_difference(start: Situation, now: Situation) -> int | None:
    """How many closers the editor added after the cursor (> 0) or stepped over (< 0); None: another change."""
    added = len(now.suffix) - len(start.suffix)
    if abs(added) > MOST_CLOSERS:
        return None
    longer, shorter = (now.suffix, start.suffix) if added >= 0 else (start.suffix, now.suffix)
    head = longer[: abs(added)]
    return added if longer.endswith(shorter) and CLOSERS.issuperset(head) else None


def _replaced(start: Situation, now: Situation, replace_after: int, text: str) -> int | None:
    """Code points after the cursor that `text` takes the place of; None if it would double a closer.

    A closer that the editor added counts as replaced once the text closes it itself.
    """
    difference = _closer_difference(start, now) or 0
    if difference <= 0:
        return replace_after + difference if replace_after + difference >= 0 else None
    closed, at = 0, -1
    for closer in now.suffix[:difference]:
        at = text.find(closer, at + 1)
        if at < 0:
            return closed
        closed += 1
    return replace_after + closed
