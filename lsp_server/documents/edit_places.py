"""Where edits move the positions of a document, and where the text that they inserted is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lsp_server.documents.text_lines import Edit, Place, split_lines


def place_after(start: Place, text: str) -> Place:
    """Return the position at the end of a text that begins at `start`."""
    *full, last = split_lines(text)
    return Place(start.line + len(full), len(last) + (0 if full else start.column))


def moved(place: Place, start: Place, old_end: Place, new_end: Place, *, after_insertion: bool) -> Place:
    """Return where an edit of start..old_end to start..new_end moves a position; from inside, it moves to an edge.

    `after_insertion` says whether a position is after a text that is inserted at it.
    """
    if place < start or (place == start and (start != old_end or not after_insertion)):
        return place
    if place >= old_end:
        column = place.column + (new_end.column - old_end.column if place.line == old_end.line else 0)
        return Place(place.line + new_end.line - old_end.line, column)
    return new_end if after_insertion else start


def last_insertion(edits: Sequence[Edit]) -> Edit:
    """Return the last edit of an event that inserted text, or else the last one, at its position after all edits.

    The user types there. Later edits only delete: with a line break, editors also trim the blanks before it.

    Args:
        edits: The edits, at least one, each at its position in the text after those before it.
    """
    index = max((index for index, edit in enumerate(edits) if edit.inserted), default=len(edits) - 1)
    start = edits[index].start
    for later in edits[index + 1 :]:
        start = moved(start, later.start, place_after(later.start, later.removed), later.start, after_insertion=True)
    return replace(edits[index], start=start)
