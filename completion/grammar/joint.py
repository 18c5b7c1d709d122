"""The joint between a text and what stands after the cursor: whether the one can follow the other as it did before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum

from completion.errors import GrammarBoundError
from completion.grammar.lr.acceptor import Acceptor
from completion.grammar.lr.advance import Snapshot

HORIZON_BYTES = 2000  # bytes after the cursor that are read; the joined parse checks the rest
_WORD = re.compile(rb"\s*(?:[\w\x80-\xff]+|[^\w\s])")


class Fit(IntEnum):
    """How well the text after the cursor follows a snapshot."""

    NO = 0
    BEGUN = 1
    SO_FAR = 2
    YES = 3


class Joint:
    """Reads the text after the cursor from snapshots, line by line, at most up to the end of the enclosing construct.

    What follows the document's own text before the cursor in the same way is a fit: from the first line at which the
    parser is in the state that it has there in the document, all of the rest follows. What is read is cached by line
    and parser state.

    Attributes:
        is_broken: Whether the document's own text before the cursor joins with nothing of it.
    """

    def __init__(self, acceptor: Acceptor, suffix: bytes) -> None:
        self._acceptor = acceptor
        self.suffix, self.is_broken = suffix, False
        self._lines = suffix[:HORIZON_BYTES].splitlines(keepends=True)
        self._is_whole = len(suffix) <= HORIZON_BYTES
        if not self._is_whole and len(self._lines) > 1:
            self._lines.pop()  # the last line is cut short
        self._after: dict[tuple[int, object, bytes], Snapshot | None] = {}  # by line and parser state
        self._reference: list[Snapshot] = []
        self._last, self._broken = len(self._lines), -1

    def refer_to(self, snapshot: Snapshot, level: int) -> None:
        """Take a snapshot that fits for the document as it was: others must end the construct around the cursor alike.

        The level is the depth of the parser's stack at the cursor.
        """
        is_outside = False
        for number, current in enumerate(self._snapshots(snapshot)):
            self._reference.append(current)
            if depth(current) < level and number:
                if is_outside:
                    self._last = number
                    return
                level, is_outside = depth(current), True
        if number < len(self._lines):
            self._broken = number
            if not any(each.strip() for each in self._lines[:number]):
                self._reference, self.is_broken = [], True
        elif self._is_whole and not self._acceptor.accepts_end(current):
            self._broken = number

    def fit(self, snapshot: Snapshot) -> Fit:
        """Return how well the text after the cursor follows a snapshot."""
        for number, current in enumerate(self._snapshots(snapshot)):
            found = self._at_line(number, current)
            if found is not None:
                return found
        return self._as_far(number, current)

    def reach(self, snapshot: Snapshot) -> int:
        """Return how many lines can be read from a snapshot, and one more if that is all and the file may end there."""
        *_, (number, current) = enumerate(self._snapshots(snapshot))
        is_all = number == len(self._lines) and (not self._is_whole or self._acceptor.accepts_end(current))
        return number + is_all

    def _at_line(self, number: int, current: Snapshot) -> Fit | None:
        """Return the fit if it is known before a line is read."""
        before = self._reference[number] if number < len(self._reference) else None
        if before is not None and (current.heads, current.pending) == (before.heads, before.pending):
            return Fit.YES
        if number < self._last:
            return None
        if before is not None and self._last < len(self._lines):
            return Fit.YES if depth(current) == depth(before) else Fit.NO
        if not self._is_whole:
            return Fit.SO_FAR if self._reference else Fit.YES
        return Fit.YES if self._acceptor.accepts_end(current) else self._as_far(number, current)

    def _as_far(self, number: int, current: Snapshot) -> Fit:
        """Return the fit where a line cannot follow, which may be wrong in the document, too."""
        if self._broken == number and self._reference:
            is_alike = number < len(self._lines) and depth(current) <= depth(self._reference[number])
            return Fit.YES if is_alike else Fit.SO_FAR
        if self._reference:
            return Fit.NO
        if any(line.strip() for line in self._lines[:number]):
            return Fit.SO_FAR
        if number == len(self._lines):
            return Fit.NO
        word = _WORD.match(self._lines[number])  # the line itself may be broken
        return Fit.BEGUN if word is not None and self._read_text(current, word.group() + b" ") is not None else Fit.NO

    def _snapshots(self, snapshot: Snapshot) -> Iterator[Snapshot]:
        """Yield a snapshot before the text after the cursor, and the one after each line that can follow."""
        yield snapshot
        for number, line in enumerate(self._lines):
            key = (number, snapshot.heads, snapshot.pending)
            if key not in self._after:
                self._after[key] = self._read_text(snapshot, line)
            after = self._after[key]
            if after is None:
                return
            yield (snapshot := after)

    def _read_text(self, snapshot: Snapshot, text: bytes) -> Snapshot | None:
        try:
            return self._acceptor.read(snapshot, text)
        except GrammarBoundError:
            return None


def depth(snapshot: Snapshot) -> int:
    """Return the number of entries of the shortest of a snapshot's stacks."""
    return min(node.depth for head in snapshot.heads for node in head.stacks.nodes)
