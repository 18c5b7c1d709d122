"""Persistence of accepted text: how much of it the document still contains after 30, 120, 300 and 600 seconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lsp_server.documents.documents import Document
from lsp_server.documents.edit_log import moved, place_after
from lsp_server.documents.text_lines import Edit, Place

CHECKPOINTS_S = (30, 120, 300, 600)

MAX_COMPARED_CHARACTERS = 20_000
"""Maximum length of the remains that are compared; the time grows with the product of both lengths."""


class Remains(NamedTuple):
    """How much of an accepted text remains at one checkpoint.

    Attributes:
        after_s: The checkpoint, in seconds after the acceptance.
        share: Similarity of both texts: 1 − edit distance / length of the longer one, 0 to 1.
        characters: Length of the longest common subsequence of both texts.
    """

    id: str
    after_s: int
    share: float
    characters: int


@dataclass(slots=True)
class _Accepted:
    """An accepted text, and the range of its document that contains its remains.

    Attributes:
        at: Time of the acceptance, by the tracker's clock.
        passed: Number of checkpoints that were measured.
    """

    id: str
    document: Document
    text: str
    start: Place
    end: Place
    at: float
    passed: int = 0

    @property
    def due(self) -> float:
        """Time of the next checkpoint."""
        return self.at + CHECKPOINTS_S[self.passed]

    def measure(self) -> Remains:
        """Compare the accepted text with the range's text now, and advance to the next checkpoint.

        A carriage return and a line feed that meet become one line end: the range may then lie outside the text.
        """
        from rapidfuzz.distance import LCSseq, Levenshtein  # noqa: PLC0415 - 4 MB, which no one needs before

        after_s = CHECKPOINTS_S[self.passed]
        self.passed += 1
        lines = self.document.lines
        now = lines.between(lines.clamp(self.start), lines.clamp(self.end))[:MAX_COMPARED_CHARACTERS]
        share = Levenshtein.normalized_similarity(self.text, now)
        return Remains(self.id, after_s, share, int(LCSseq.similarity(self.text, now)))

    def follow(self, edit: Edit) -> None:
        """Move the range with an edit. If an edit restores a text that was deleted (undo, redo), find it again."""
        old_end, new_end = place_after(edit.start, edit.removed), place_after(edit.start, edit.inserted)
        if self.start == self.end == edit.start and self.text in edit.inserted:
            head = edit.inserted[: edit.inserted.index(self.text)]
            self.start = place_after(edit.start, head)
            self.end = place_after(self.start, self.text)
            return
        self.start = moved(self.start, edit.start, old_end, new_end, after_insertion=True)
        self.end = max(self.start, moved(self.end, edit.start, old_end, new_end, after_insertion=False))


@dataclass(frozen=True, slots=True)
class PersistenceTracker:
    """Follows accepted texts through edits and reports their remains at each checkpoint."""

    report: Callable[[Remains], None]
    clock: Callable[[], float]
    _accepted: dict[str, _Accepted] = field(default_factory=dict)

    def accepted(self, id_: str, document: Document, place: Place, text: str) -> bool:
        """Follow a text that was inserted at a position. It replaces an earlier part of the same completion.

        Returns:
            Whether the document contains the text there. A client may report an acceptance before its edit.
        """
        lines = document.lines
        end = lines.advance(place, len(text))
        if not text or lines.clamp(place) != place or lines.between(place, end) != text:
            return False
        known = self._accepted.get(id_)
        at, passed = (known.at, known.passed) if known is not None else (self.clock(), 0)
        self._accepted[id_] = _Accepted(id_, document, text, place, end, at, passed)
        return True

    def changed(self, document: Document, edits: Sequence[Edit]) -> None:
        """Move the followed texts of a document with its edits."""
        for accepted in self._accepted.values():
            if accepted.document is document:
                for edit in edits:
                    accepted.follow(edit)

    def forget(self) -> None:
        """Follow none of the texts any more, and report nothing of them."""
        self._accepted.clear()

    def closed(self, document: Document) -> None:
        """Report the current remains in a document for all later checkpoints, because it was closed."""
        for accepted in [one for one in self._accepted.values() if one.document is document]:
            del self._accepted[accepted.id]
            for _ in CHECKPOINTS_S[accepted.passed :]:
                self.report(accepted.measure())

    def tick(self) -> None:
        """Report the remains at every checkpoint that is due."""
        now = self.clock()
        for accepted in list(self._accepted.values()):
            while accepted.passed < len(CHECKPOINTS_S) and accepted.due <= now:
                self.report(accepted.measure())
            if accepted.passed == len(CHECKPOINTS_S):
                del self._accepted[accepted.id]

    def next_due(self) -> float | None:
        """Return the time of the next checkpoint by the clock, None if no text is followed."""
        return min((accepted.due for accepted in self._accepted.values()), default=None)
