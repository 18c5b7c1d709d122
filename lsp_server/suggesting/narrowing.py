"""Narrowing: what of a suggestion is left to insert after the user typed on, and what it then replaces."""

from __future__ import annotations

from dataclasses import dataclass

from completion.request import Suggestion
from lsp_server.gate.features import typed_between

CLOSERS = frozenset(")]}>\"'`")
"""Characters that editors add by themselves after the cursor when their opener is typed."""

MOST_CLOSERS = 3
"""How many closers an editor is expected to add or step over between two requests."""


@dataclass(frozen=True, slots=True)
class Situation:
    """The text around a cursor as far as narrowing and the gate look, with line ends as the document has them.

    Attributes:
        prefix: The document before the cursor, or the last part of it.
        suffix: The document after the cursor, or the first part of it.
        left_out_before: Characters of the document before `prefix`.
        left_out_after: Characters of the document after `suffix`.
    """

    prefix: str
    suffix: str
    left_out_before: int = 0
    left_out_after: int = 0

    @property
    def offset(self) -> int:
        """Characters of the document before the cursor."""
        return self.left_out_before + len(self.prefix)

    @property
    def remaining(self) -> int:
        """Characters of the document after the cursor."""
        return self.left_out_after + len(self.suffix)


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
    if _closer_difference(start, now) is None:
        return None
    return typed_between(start.prefix, now.prefix, now.offset - start.offset)


def _closer_difference(start: Situation, now: Situation) -> int | None:
    """How many closers the editor added after the cursor (> 0) or stepped over (< 0); None: another change."""
    added = now.remaining - start.remaining
    if abs(added) > MOST_CLOSERS:
        return None
    longer, shorter = (now.suffix, start.suffix) if added >= 0 else (start.suffix, now.suffix)
    closers, kept = longer[: abs(added)], longer[abs(added) :]
    common = min(len(kept), len(shorter))
    return added if kept[:common] == shorter[:common] and CLOSERS.issuperset(closers) else None


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
