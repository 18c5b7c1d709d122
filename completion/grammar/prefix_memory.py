"""Snapshots of the text before the cursor, kept from request to request: a typed key reads one line again."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from completion.errors import CancelledError, PrefixTooLargeError
from completion.grammar.lr.acceptor import Acceptor
from completion.grammar.lr.advance import Snapshot
from completion.syntax.changed_span import common_length

_KEPT_TEXTS = 8
MAX_READ_BYTES = 200_000  # about a second, when nothing of the text is known
_PIECE_BYTES = 1024  # the longest piece that is read without a look at the cancel token
_CHUNK_BYTES = 512  # between two snapshots, where the text is not near the cursor
_FINE_LINES = 8  # before the cursor that have a snapshot each: what is typed reads no more than its own line again


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """A text of which a beginning was read: snapshot i stands at offset i, a line's start or a piece's end."""

    text: bytes
    offsets: list[int]
    snapshots: list[Snapshot]


class PrefixMemory:
    """The acceptor's snapshots at line starts of the last texts, and the last beginnings that it rejected."""

    def __init__(self, acceptor: Acceptor) -> None:
        self._acceptor = acceptor
        self._known: deque[_Known] = deque(maxlen=_KEPT_TEXTS)
        self._broken: deque[bytes] = deque(maxlen=_KEPT_TEXTS)

    def read(
        self,
        text: bytes,
        finished: Callable[[], Sequence[tuple[int, int]]],
        check: Callable[[], None] = lambda: None,
    ) -> Snapshot | None:
        """The snapshot after `text`, None if it is not the beginning of any text of the language.

        Args:
            text: The text before the cursor.
            finished: Gives the parts of it that need not be read; called where nothing of the text is known.
            check: Called between pieces of the text; may raise `CancelledError`, and what was read stays known.

        Raises:
            GrammarBoundError: The text needs more than the acceptor follows.
            PrefixTooLargeError: More than `MAX_READ_BYTES` would have to be read.
        """
        self._acceptor.trim()
        if any(text.startswith(beginning) for beginning in self._broken):
            return None
        offsets, snapshots = self._resume(text) or self._begin(text, finished(), check)
        after = self._read_on(text, offsets, snapshots, check)
        if after is None and offsets[0] > 0:
            after = self._read_on(text, [0], [self._acceptor.start()], check)
        return after

    def _resume(self, text: bytes) -> tuple[list[int], list[Snapshot]] | None:
        """The snapshots of the known text that agrees furthest, up to where it agrees."""
        best, kept = None, 0
        for known in self._known:
            count = bisect_right(known.offsets, common_length(known.text, text))
            if count > 1 and (best is None or known.offsets[count - 1] > best.offsets[kept - 1]):
                best, kept = known, count
        if best is None:
            return None
        self._known.remove(best)
        return best.offsets[:kept], best.snapshots[:kept]

    def _begin(
        self, text: bytes, finished: Sequence[tuple[int, int]], check: Callable[[], None]
    ) -> tuple[list[int], list[Snapshot]]:
        """Start at the last part that cannot be passed over, behind the parts before it."""
        offset, snapshot = 0, self._acceptor.start()
        for start, end in finished:
            for piece in (*range(offset + _PIECE_BYTES, start, _PIECE_BYTES), start):
                check()
                after = self._acceptor.read(snapshot, text[offset:piece])
                if after is None:
                    return [0], [self._acceptor.start()]
                offset, snapshot = piece, after
            offset = end
        return [offset], [snapshot]

    def _read_on(
        self, text: bytes, offsets: list[int], snapshots: list[Snapshot], check: Callable[[], None]
    ) -> Snapshot | None:
        offset, snapshot = offsets[-1], snapshots[-1]
        if len(text) - offset > MAX_READ_BYTES:
            raise PrefixTooLargeError(f"{len(text) - offset} bytes before the cursor are more than {MAX_READ_BYTES}.")
        for end in _chunk_ends(text, offset):
            try:
                check()
            except CancelledError:
                self._known.append(_Known(text, offsets, snapshots))
                raise
            after = self._acceptor.read(snapshot, text[offset:end])
            if after is None:
                self._reject(text[:end], offsets[0])
                return None
            offset, snapshot = end, after
            offsets.append(offset)
            snapshots.append(snapshot)
        self._known.append(_Known(text, offsets, snapshots))
        return self._acceptor.read(snapshot, text[offset:])

    def _reject(self, beginning: bytes, start: int) -> None:
        """Remember a rejected beginning, if it was read from the file's start."""
        if start == 0:
            self._broken.append(beginning)


def _chunk_ends(text: bytes, offset: int) -> Iterator[int]:
    """Ends of pieces behind `offset`: several lines each, one by one near the text's end; long lines are parted."""
    fine = len(text)
    for _ in range(_FINE_LINES):
        fine = text.rfind(b"\n", offset, max(fine - 1, offset)) + 1 or offset
    while (end := text.find(b"\n", offset) + 1) > 0:
        if end < fine:
            end = text.rfind(b"\n", offset, min(offset + _CHUNK_BYTES, fine)) + 1 or end
        yield from range(offset + _PIECE_BYTES, end, _PIECE_BYTES)
        yield end
        offset = end
    yield from range(offset + _PIECE_BYTES, len(text), _PIECE_BYTES)
