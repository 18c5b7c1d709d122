"""Finds the offsets where a completion can be cut so that prefix, completion and suffix parse together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from completion.errors import GrammarBoundError
from completion.grammar.lr.acceptor import Acceptor
from completion.grammar.lr.advance import Snapshot

HORIZON_BYTES = 2000  # bytes after the cursor that are checked; the joined parse checks the rest
_BOUNDARY = re.compile(rb"\n|\"{3}|'{3}|[)\]};\"'`>]")
_WORD = re.compile(rb"[\w$\x80-\xff]+")
_CHECKED_CUTS = 64  # cuts of one completion that are tried, the longest first


class SuffixCheck:
    """Checks whether the text after the cursor can follow a snapshot.

    Results are cached by line and parser state: after two snapshots reach the same state, the rest is not read again.
    """

    def __init__(self, acceptor: Acceptor, suffix: bytes) -> None:
        self._acceptor = acceptor
        self._lines = suffix[:HORIZON_BYTES].splitlines(keepends=True)
        if len(suffix) > HORIZON_BYTES and self._lines:
            self._lines.pop()  # the last line is cut short
        self._known: dict[tuple[object, ...], bool] = {}

    def passes(self, snapshot: Snapshot) -> bool:
        """Return whether the suffix, up to the horizon, parses from a snapshot."""
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
    """Return the offsets before and after every newline and closer, and the end; ascending."""
    around = {offset for match in _BOUNDARY.finditer(middle) for offset in match.span()}
    return sorted({*around, len(middle)} - {0})


def word_ends(middle: bytes) -> list[int]:
    """Return the offsets after each word of a single line, ascending; none for several lines."""
    return [] if b"\n" in middle else [match.end() for match in _WORD.finditer(middle)]


def passing_offsets(
    acceptor: Acceptor,
    root: Snapshot,
    middle: bytes,
    suffix: SuffixCheck,
    offsets: list[int],
    check: Callable[[], None],
) -> Iterator[int]:
    """Yield the offsets where the suffix parses, the longest first; at most `_CHECKED_CUTS` offsets are tried.

    Args:
        acceptor: Acceptor of the language.
        root: Snapshot before the completion.
        middle: The completion.
        suffix: Check of the text after the cursor.
        offsets: Offsets where the completion can be cut, ascending.
        check: Called before each check of the suffix; can raise `CancelledError`.
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
    """Return the whole length, then the ends of the earlier lines, the longest first."""
    ends = [match.start() for match in re.finditer(rb"\r?\n", middle)]
    return sorted({len(middle), *ends} - {0}, reverse=True)
