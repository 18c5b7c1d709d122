"""A cache of snapshots of the text before the cursor: after a keystroke the acceptor reads one line again."""

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
MAX_READ_BYTES = 200_000  # bytes read for one prefix: about a second for an unknown text
_PIECE_BYTES = 1024  # bytes read between two checks of the cancel token
_CHUNK_BYTES = 512  # distance between snapshots far from the cursor
_SNAPSHOT_BYTES = 800  # of a snapshot without the stacks, which the acceptor counts
_FINE_LINES = 8  # lines before the cursor with a snapshot each, so that a keystroke reads one line again


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """A text whose beginning was read: snapshot i belongs to offset i, a line's start or a piece's end."""

    text: bytes
    offsets: list[int]
    snapshots: list[Snapshot]


class PrefixMemory:
    """The acceptor's snapshots at line starts of the last texts, and the last beginnings that it rejected."""

    def __init__(self, acceptor: Acceptor) -> None:
        self._acceptor = acceptor
        self._known: deque[_Known] = deque(maxlen=_KEPT_TEXTS)
        self._broken: deque[bytes] = deque(maxlen=_KEPT_TEXTS)

    @property
    def size_bytes(self) -> int:
        """Approximate memory of the texts and their snapshots."""
        texts = [*(known.text for known in list(self._known)), *list(self._broken)]
        return sum(map(len, texts)) + _SNAPSHOT_BYTES * sum(len(known.snapshots) for known in list(self._known))

    def read(
        self, text: bytes, skippable: Callable[[], Sequence[tuple[int, int]]], check: Callable[[], None] = lambda: None
    ) -> Snapshot | None:
        """Return the snapshot after `text`; None if no valid file begins with it.

        Args:
            text: Text before the cursor.
            skippable: Returns the parts of it that can be skipped; called if no beginning of the text is cached.
            check: Called between pieces of the text; can raise `CancelledError`, which keeps the snapshots so far.

        Raises:
            GrammarBoundError: The text exceeds a bound of the parser.
            PrefixTooLargeError: More than `MAX_READ_BYTES` bytes have to be read.
        """
        self._acceptor.trim()
        if any(text.startswith(beginning) for beginning in self._broken):
            return None
        offsets, snapshots = self._resume(text) or self._begin(text, skippable(), check)
        after = self._read_on(text, offsets, snapshots, check)
        if after is None and offsets[0] > 0:
            after = self._read_on(text, [0], [self._acceptor.start()], check)
        return after

    def _resume(self, text: bytes) -> tuple[list[int], list[Snapshot]] | None:
        """Return the snapshots of the cached text with the longest common beginning, up to its end."""
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
        self, text: bytes, skippable: Sequence[tuple[int, int]], check: Callable[[], None]
    ) -> tuple[list[int], list[Snapshot]]:
        """Return the snapshot after the last skippable part; the file's start if the text between is rejected."""
        offset, snapshot = 0, self._acceptor.start()
        for start, end in skippable:
            for piece in (*range(offset + _PIECE_BYTES, start, _PIECE_BYTES), start):
                check()
                self._acceptor.trim()
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
            raise PrefixTooLargeError(f"The prefix has {len(text) - offset} bytes to read, more than {MAX_READ_BYTES}.")
        for end in _chunk_ends(text, offset):
            self._acceptor.trim()
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
        """Cache a rejected beginning if it was read from the file's start."""
        if start == 0:
            self._broken.append(beginning)


def _chunk_ends(text: bytes, offset: int) -> Iterator[int]:
    """Yield the ends of pieces after `offset`: several lines each, single lines near the end, parts of long lines."""
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
