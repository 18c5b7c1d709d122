"""Where a completion may be cut: offsets at which the text before the cursor, it, and the text after it parse on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from completion.errors import GrammarBoundError
from completion.grammar.lr.acceptor import Acceptor
from completion.grammar.lr.advance import Snapshot

HORIZON_BYTES = 2000  # of the text after the cursor; what lies behind is the joined parse's business
_BOUNDARY = re.compile(rb"\n|[)\]};\"'`>]")
_WORD = re.compile(rb"[\w$\x80-\xff]+")
_CHECKED_CUTS = 64


class SuffixCheck:
    """Asks whether the text after the cursor can follow a snapshot.

    The answer is remembered by line and state, so that once two snapshots meet, the rest is not read again.
    """

    def __init__(self, acceptor: Acceptor, suffix: bytes, horizon_bytes: int = HORIZON_BYTES) -> None:
        self._acceptor = acceptor
        self._lines = suffix[:horizon_bytes].splitlines(keepends=True)
        if len(suffix) > horizon_bytes and self._lines:
            self._lines.pop()  # the last line is cut short
        self._known: dict[tuple[object, ...], bool] = {}

    def passes(self, snapshot: Snapshot) -> bool:
        """Whether the suffix parses on from here, as far as it is looked at."""
        keys: list[tuple[object, ...]] = []
        verdict = True
        current: Snapshot | None = snapshot
        for number, line in enumerate(self._lines):
            assert current is not None  # noqa: S101  the loop ends at the first None
            key = (number, current.heads, current.pending)
            known = self._known.get(key)
            if known is not None:
                verdict = known
                break
            keys.append(key)
            current = self._read(current, line)
            if current is None:
                verdict = False
                break
        self._known.update(dict.fromkeys(keys, verdict))
        return verdict

    def _read(self, snapshot: Snapshot, line: bytes) -> Snapshot | None:
        try:
            return self._acceptor.read(snapshot, line)
        except GrammarBoundError:
            return None


def cut_offsets(middle: bytes) -> list[int]:
    """Before and after every newline and closer, and the end; ascending."""
    around = {offset for match in _BOUNDARY.finditer(middle) for offset in match.span()}
    return sorted({*around, len(middle)} - {0})


def word_ends(middle: bytes) -> list[int]:
    """Behind every word of a single line, ascending; none in several lines."""
    return [] if b"\n" in middle else [match.end() for match in _WORD.finditer(middle)]


def passing_offsets(
    acceptor: Acceptor,
    root: Snapshot,
    middle: bytes,
    suffix: SuffixCheck,
    offsets: list[int],
    check: Callable[[], None] = lambda: None,
) -> Iterator[int]:
    """Offsets, longest first, at which the suffix parses on; at most the last few dozen of `offsets` are tried.

    Args:
        acceptor: The language's.
        root: Before the completion.
        middle: The completion.
        suffix: The text after the cursor.
        offsets: Where the completion may be cut, ascending.
        check: Called before each look at the suffix; may raise `CancelledError`.
    """
    reached: list[tuple[int, Snapshot]] = []
    snapshot, offset = root, 0
    for end in offsets:
        try:
            after = acceptor.advance(snapshot, middle[offset:end])
        except GrammarBoundError:
            break
        if after is None:
            break
        snapshot, offset = after, end
        reached.append((offset, snapshot))
    for end, after in reversed(reached[-_CHECKED_CUTS:]):
        check()
        if suffix.passes(after):
            yield end


def line_ends(middle: bytes) -> list[int]:
    """The whole length, then the ends of the lines before, longest first."""
    ends = [match.start() for match in re.finditer(rb"\r?\n", middle)]
    return sorted({len(middle), *ends} - {0}, reverse=True)
