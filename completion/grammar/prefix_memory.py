"""A cache of snapshots of the text before the cursor: after a keystroke the acceptor reads one line again."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from completion.edits import common_length
from completion.errors import CancelledError, GrammarBoundError, PrefixTooLargeError
from completion.grammar.lr.acceptor import Acceptor
from completion.grammar.lr.advance import Snapshot

_KEPT_TEXTS = 8  # texts with snapshots, and as many beginnings that were rejected
MAX_READ_BYTES = 200_000  # bytes read for one prefix: about a second for an unknown text
_NEAR_BYTES = 2000  # unread bytes that are read rather than searched for parts to skip: about 15 ms
_WORD_START = re.compile(rb"\A|\b\w|[^\w\s]|\Z")
_PIECE_BYTES = 1024  # bytes read between two checks of the cancel token
_CHUNK_BYTES = 512  # distance between snapshots far from the cursor
_SNAPSHOT_BYTES = 800  # of a snapshot without the stacks, which the acceptor counts
_FINE_LINES = 8  # lines before the cursor with a snapshot each, so that a keystroke reads one line again


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """A text whose beginning was read.

    Attributes:
        text: The whole text.
        offsets: The file's start, then starts of lines and ends of pieces, ascending.
        snapshots: The snapshot at each offset.
        whole: Number of snapshots before which no part was skipped.
    """

    text: bytes
    offsets: list[int]
    snapshots: list[Snapshot]
    whole: int

    def until(self, count: int) -> _Known:
        """Return the first `count` snapshots."""
        return _Known(self.text, self.offsets[:count], self.snapshots[:count], min(self.whole, count))


@dataclass(frozen=True, slots=True, eq=False)
class _Route:
    """A way to read a text.

    Attributes:
        known: Snapshots of the text's beginning.
        index: Index of the snapshot to read on from.
        spans: Start and end of the parts that are read after it; what is between them is skipped.
    """

    known: _Known
    index: int
    spans: Sequence[tuple[int, int]]

    @property
    def is_whole(self) -> bool:
        """Whether no part of the text is skipped, nor was one."""
        return len(self.spans) == 1 and self.known.whole == len(self.known.offsets)

    def unread_bytes(self) -> int:
        """Return the number of bytes to read."""
        return sum(end - start for start, end in self.spans)

    def pieces(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Yield start and end of the pieces to read, without the rest of the last line."""
        *parts, (last, _) = self.spans
        for start, end in parts:
            yield from pairwise((start, *_chunk_ends(text[:end], start), end))
        yield from pairwise((last, *_chunk_ends(text, last)))


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
            skippable: Returns the parts of it that can be skipped; called if much of the text is unknown.
            check: Called between pieces of the text; can raise `CancelledError`, which keeps the snapshots so far.

        Raises:
            GrammarBoundError: The text exceeds a bound of the parser.
            PrefixTooLargeError: More than `MAX_READ_BYTES` bytes have to be read.
        """
        self._acceptor.trim()
        if any(text.startswith(beginning) for beginning in self._broken):
            return None
        cached, known = self._resume(text)
        for route in _routes(text, known, skippable):
            after = self._read_on(text, route, cached, check)
            if after is not None:
                return after
        return None

    def read_sound_words(self, text: bytes) -> Snapshot | None:
        """Return the snapshot after a text whose last line is broken, without the line's first words.

        None if a line above it is broken or unread: what is wrong there says nothing about the last line. None of a
        long line either, because each of its words may have to be tried.

        Raises:
            GrammarBoundError: The text exceeds a bound of the parser.
        """
        _, known = self._resume(text)
        offset, snapshot = known.offsets[-1], known.snapshots[-1]
        if offset <= text.rfind(b"\n") or len(text) - offset > _NEAR_BYTES:
            return None
        starts = (match.start() for match in _WORD_START.finditer(text[offset:]))
        return next(filter(None, (self._acceptor.read(snapshot, text[offset + start :]) for start in starts)), None)

    def _resume(self, text: bytes) -> tuple[_Known | None, _Known]:
        """Return the cached text with the longest common beginning, and its snapshots up to there; else the start."""
        best, kept = None, 1
        for known in self._known:
            count = bisect_right(known.offsets, common_length(known.text, text))
            if known.offsets[count - 1] > (best.offsets[kept - 1] if best else 0):
                best, kept = known, count
        return best, best.until(kept) if best else _Known(text, [0], [self._acceptor.start()], 1)

    def _read_on(self, text: bytes, route: _Route, cached: _Known | None, check: Callable[[], None]) -> Snapshot | None:
        """Return the snapshot after `text`, which replaces the cached text; None if it is rejected."""
        offset = route.spans[-1][0]
        unread = len(text) - offset
        if unread > MAX_READ_BYTES:
            raise PrefixTooLargeError(f"The prefix has {unread} bytes to read, more than {MAX_READ_BYTES}.")
        longer = route.known.until(len(route.known.offsets))
        snapshot = route.known.snapshots[route.index]
        try:
            for start, end in route.pieces(text):
                self._acceptor.trim()
                check()
                after = self._acceptor.read(snapshot, text[start:end])
                if after is None:
                    if route.is_whole:
                        self._broken.append(text[:end])
                    return None
                snapshot, offset = after, max(offset, end)
                if end > longer.offsets[-1]:
                    longer.offsets.append(end)
                    longer.snapshots.append(snapshot)
            after = self._acceptor.read(snapshot, text[offset:])
        except (CancelledError, GrammarBoundError):
            self._keep(text, longer, route, cached)
            raise
        if after is not None or route.is_whole:  # else what was skipped can be why it is rejected
            self._keep(text, longer, route, cached)
        return after

    def _keep(self, text: bytes, longer: _Known, route: _Route, cached: _Known | None) -> None:
        """Cache the snapshots of a text in place of a cached text that they continue."""
        if cached is not None:
            self._known.remove(cached)
        whole = len(longer.offsets) if route.is_whole else longer.whole
        self._known.append(_Known(text, longer.offsets, longer.snapshots, whole))


def _routes(text: bytes, known: _Known, skippable: Callable[[], Sequence[tuple[int, int]]]) -> Iterator[_Route]:
    """Yield the ways to read a text until one accepts it: the shortest, without skipping more, without skipping.

    What is skipped can be what an `else` in the text after it belongs to, so only the last way rejects a text.
    """
    length = len(text)
    if len(known.offsets) == 1 or length - known.offsets[-1] > _NEAR_BYTES:
        parts = skippable()
        routes = (_Route(known, index, _spans(at, parts, length)) for index, at in enumerate(known.offsets))
        shortest = min(routes, key=_Route.unread_bytes)
        if len(shortest.spans) > 1:
            yield shortest
    for kept in dict.fromkeys((len(known.offsets), known.whole)):
        yield _Route(known.until(kept), kept - 1, [(known.offsets[kept - 1], length)])


def _spans(offset: int, parts: Sequence[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    """Return what is left of a text after an offset without some parts of it."""
    skipped = [part for part in parts if part[0] >= offset]
    return list(zip((offset, *(end for _, end in skipped)), (*(start for start, _ in skipped), length), strict=True))


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
