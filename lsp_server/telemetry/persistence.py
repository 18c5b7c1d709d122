"""What becomes of accepted text: how much of it still stands after 30, 120, 300 and 600 seconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rapidfuzz.distance import LCSseq, Levenshtein

from lsp_server.documents.documents import Document
from lsp_server.documents.text_lines import Edit, Place, split_lines

CHECKPOINTS_S = (30, 120, 300, 600)

MEASURED_CHARACTERS = 20_000
"""Most characters of what stands there now that are compared: the work grows with the product of both lengths."""


@dataclass(frozen=True, slots=True)
class Remains:
    """What stands of an accepted text at one checkpoint.

    Attributes:
        id: The completion's id.
        after_s: The checkpoint.
        share: 1 − edit distance / length of the longer text, 0 to 1.
        characters: Accepted characters that still stand there, in order.
    """

    id: str
    after_s: int
    share: float
    characters: int


@dataclass(slots=True)
class _Accepted:
    """An accepted text, and where in its document what is left of it stands."""

    id: str
    document: Document
    text: str
    start: Place
    end: Place
    at: float
    passed: int = 0

    @property
    def due(self) -> float:
        """When its next checkpoint is."""
        return self.at + CHECKPOINTS_S[self.passed]

    def measure(self) -> Remains:
        """Compare what stands there now, and go on to the next checkpoint."""
        after_s = CHECKPOINTS_S[self.passed]
        self.passed += 1
        now = self.document.lines.between(self.start, self.end)[:MEASURED_CHARACTERS]
        share = Levenshtein.normalized_similarity(self.text, now)
        return Remains(self.id, after_s, share, int(LCSseq.similarity(self.text, now)))

    def follow(self, edit: Edit) -> None:
        """Move with an edit; text that is put back where it was taken away is found again (undo, redo)."""
        old_end, new_end = _end_of(edit.start, edit.removed), _end_of(edit.start, edit.inserted)
        if self.start == self.end == edit.start and self.text in edit.inserted:
            head = edit.inserted[: edit.inserted.index(self.text)]
            self.start = _end_of(edit.start, head)
            self.end = _end_of(self.start, self.text)
            return
        self.start = _moved(self.start, edit.start, old_end, new_end, after_insertion=True)
        self.end = max(self.start, _moved(self.end, edit.start, old_end, new_end, after_insertion=False))


class PersistenceTracker:
    """Follows accepted texts through edits and reports their remains when a checkpoint has come.

    Args:
        report: Called with what remains.
        clock: Seconds, monotonic.
    """

    def __init__(self, report: Callable[[Remains], None], clock: Callable[[], float]) -> None:
        self._report = report
        self._clock = clock
        self._accepted: dict[str, _Accepted] = {}

    def accepted(self, id_: str, document: Document, place: Place, text: str) -> bool:
        """Follow a text that was inserted at a place; a longer part of the same completion takes over from a shorter.

        Returns:
            Whether the text stands there: a client may announce an acceptance before the edit.
        """
        end = document.lines.advance(place, len(text))
        if not text or document.lines.between(place, end) != text:
            return False
        known = self._accepted.get(id_)
        at = known.at if known is not None else self._clock()
        self._accepted[id_] = _Accepted(id_, document, text, place, end, at)
        return True

    def changed(self, document: Document, edits: Sequence[Edit]) -> None:
        """A document's text changed."""
        for accepted in self._accepted.values():
            if accepted.document is document:
                for edit in edits:
                    accepted.follow(edit)

    def closed(self, document: Document) -> None:
        """A document was closed: what stands in it now is what remains at every later checkpoint."""
        for accepted in [one for one in self._accepted.values() if one.document is document]:
            del self._accepted[accepted.id]
            for _ in CHECKPOINTS_S[accepted.passed :]:
                self._report(accepted.measure())

    def tick(self) -> None:
        """Measure what is due."""
        now = self._clock()
        for accepted in list(self._accepted.values()):
            while accepted.passed < len(CHECKPOINTS_S) and accepted.due <= now:
                self._report(accepted.measure())
            if accepted.passed == len(CHECKPOINTS_S):
                del self._accepted[accepted.id]

    def next_due(self) -> float | None:
        """When `tick` has something to do, by the clock; None while nothing is followed."""
        return min((accepted.due for accepted in self._accepted.values()), default=None)


def _end_of(start: Place, text: str) -> Place:
    """Where a text ends that begins at a place."""
    *full, last = split_lines(text)
    return Place(start.line + len(full), len(last) + (0 if full else start.column))


def _moved(place: Place, start: Place, old_end: Place, new_end: Place, *, after_insertion: bool) -> Place:
    """A place after start .. old_end became start .. new_end; inside of it, the place moves to its edge."""
    if place < start or (place == start and (start != old_end or not after_insertion)):
        return place
    if place >= old_end:
        column = place.column + (new_end.column - old_end.column if place.line == old_end.line else 0)
        return Place(place.line + new_end.line - old_end.line, column)
    return new_end if after_insertion else start
