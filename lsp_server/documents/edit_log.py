"""What the user changed in one document, as hunks of lines, and where edits move positions; kept in memory only.

Edits that touch or adjoin each other's lines are one hunk. A hunk is the difference between its lines before the first
of these edits and now, so one that is undone disappears.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from completion.edits import MAX_HISTORY_CHARACTERS, LineEdit, changed_span
from lsp_server.documents.text_lines import Edit, Place, TextLines, split_lines

SHOWN_HUNKS = 4
"""Maximum number of finished hunks in a history (`python -m benchmarks.quality` measured it)."""
MAX_HUNKS = 16
"""Maximum number of hunks that a log keeps; more than are shown, because edits can undo or join hunks."""
MAX_HUNK_CHARACTERS = 4_000
"""Maximum number of characters of a hunk, before or after it; a larger one is a paste, a move or generated code."""
MAX_HUNK_LINES = 120
"""Maximum number of lines of a hunk, before or after it: about those of so much code. A change costs as much time as
its hunk has lines."""
MAX_NOTED = 200
"""Maximum number of changes of one event that a log keeps, the last ones: one key at 10,000 cursors is as many."""


@dataclass(slots=True)
class _Hunk:
    """A change: the `count` lines from `first` on were `old` before. `gone` is what was deleted of them."""

    first: int
    count: int
    old: list[str]
    gone: str = ""

    @property
    def end(self) -> int:
        return self.first + self.count

    def edit(self, lines: TextLines) -> LineEdit:
        """Return the lines before and now, without those that both sides begin or end with."""
        new = [lines.line(number) for number in range(self.first, min(self.end, lines.end.line + 1))]
        start, old_end, new_end = changed_span(self.old, new)
        return LineEdit(self.first + start, tuple(self.old[start:old_end]), tuple(new[start:new_end]))


@dataclass(slots=True)
class EditLog:
    """The last changes of one document, as hunks; the one that was edited last is the last."""

    _hunks: list[_Hunk] = field(default_factory=list)

    def note(self, edit: Edit, lines: TextLines, added: int) -> None:
        """Record an edit, after which the document is `lines` and has `added` lines more than before."""
        start = edit.start.line
        after = lines.advance(edit.start, len(edit.inserted))
        sizes = edit.start.column + lines.line_length(after.line) - after.column, len(edit.removed), len(edit.inserted)
        if sum(sizes) > MAX_HUNK_CHARACTERS:
            self.drop(edit, added)
            return
        head, tail = lines.line(start)[: edit.start.column], lines.line(after.line)[after.column :]
        before = [line.rstrip("\r\n") for line in split_lines(head + edit.removed + tail)]
        touched = self._take(start, len(before), added)
        hunk = _joined(touched, start, before)
        hunk.count += added
        if max(len(hunk.old), hunk.count) > MAX_HUNK_LINES:
            return
        made = hunk.edit(lines)
        old, new = made.old, made.new
        if not _is_deleted("\n".join(old), "\n".join(new)):  # or what was deleted is back
            hunk.gone = ""
        elif edit.removed.strip():
            hunk.gone = LineEdit(0, old, ()).hunk()
        if old != new and max(len("\n".join(side)) for side in (old, new)) <= MAX_HUNK_CHARACTERS:
            self._hunks = [*self._hunks, hunk][-MAX_HUNKS:]

    def drop(self, edit: Edit, added: int) -> None:
        """Forget the hunks that an edit touches, and move the others."""
        self._take(edit.start.line, 1 + edit.removed.count("\n") + edit.removed.count("\r"), added)

    def _take(self, start: int, count: int, added: int) -> list[_Hunk]:
        """Return the hunks that touch or adjoin `count` lines, without keeping them, and move the others."""
        touched = [hunk for hunk in self._hunks if hunk.first <= start + count and start <= hunk.end]
        self._hunks = [hunk for hunk in self._hunks if hunk not in touched]
        for hunk in self._hunks:
            hunk.first += added if hunk.first > start else 0
        return touched

    def history(self, line: int, lines: TextLines) -> str:
        """Return the last finished hunks as a diff, then what was deleted of the hunk at the cursor's line.

        While the user types at one place it stays the same: the hunk there is not finished.
        """
        finished, shown = self._hunks, ""
        if finished and finished[-1].first <= line < finished[-1].end:
            finished, shown = finished[:-1], finished[-1].gone
        texts = [text for hunk in finished if (text := hunk.edit(lines).hunk())]
        for text in reversed(texts[-SHOWN_HUNKS:]):
            if len(text) + len(shown) > MAX_HISTORY_CHARACTERS:
                break
            shown = text + shown
        return shown

    def has_deleted(self, line: int) -> bool:
        """Return whether the last hunk of `history` is what was deleted of the hunk at a line."""
        return bool(self._hunks and self._hunks[-1].first <= line < self._hunks[-1].end and self._hunks[-1].gone)

    def edits(self, lines: TextLines) -> tuple[LineEdit, ...]:
        """Return the last changes, the unfinished one included, the latest last."""
        return tuple(made for hunk in self._hunks if (made := hunk.edit(lines)).hunk())


def _joined(touched: Sequence[_Hunk], start: int, before: Sequence[str]) -> _Hunk:
    """Return one hunk of the touched ones and the lines `before` that were there from `start` on."""
    hunk, at = _Hunk(min([start, *(hunk.first for hunk in touched)]), 0, []), start
    for part in sorted(touched, key=lambda part: part.first):
        hunk.old += [*before[at - start : max(at, part.first) - start], *part.old]
        hunk.gone += part.gone
        at = max(at, part.end)
    hunk.old += before[at - start :]
    hunk.count = max(at, start + len(before)) - hunk.first
    return hunk


def _is_deleted(old: str, new: str) -> bool:
    """Return whether text of `old` is missing in `new`, not only text that was typed since."""
    start, old_end, _ = changed_span(old, new)
    return not old[start:old_end].isspace() and start < old_end


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
