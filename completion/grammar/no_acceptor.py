"""A request without an acceptor, with the reason; and the counters of any request's grammar."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from time import perf_counter

from completion.grammar.joined_document import JoinedDocument
from completion.grammar.joining import Joining, Missing
from completion.grammar.suffix_check import line_ends


class OffReason(StrEnum):
    """The reason why a request runs without the acceptor."""

    SWITCHED_OFF = "switched_off"
    NO_GRAMMAR = "no_grammar"
    GRAMMAR_UNSUPPORTED = "grammar_unsupported"
    BROKEN_BEFORE_CURSOR = "broken_before_cursor"
    TOO_LARGE = "too_large"
    BOUND = "bound"
    PARSE_LIMIT = "parse_limit"


@dataclass(slots=True)
class GrammarCounters:
    """Counters of the grammar's work for a request.

    Attributes:
        checks: Number of tokens that were checked.
        rejections: Number of tokens that the grammar rejected.
        elapsed_ms: Time spent, including opening and cutting.
    """

    checks: int = 0
    rejections: int = 0
    elapsed_ms: float = 0.0

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Add the time of the block."""
        started = perf_counter()
        try:
            yield
        finally:
            self.elapsed_ms += 1000 * (perf_counter() - started)


@dataclass(slots=True)
class NoAcceptor:
    """A request without an acceptor. The joined parse still cuts if tree-sitter understands what is around the cursor.

    Attributes:
        off_reason: Why there is no acceptor.
        joined: The document for the joined parse; None without a grammar.
        joining: Joins completions with what follows them; None if the text before the cursor cannot be read.
        counters: Counters of the work so far.
    """

    off_reason: OffReason
    joined: JoinedDocument | None = None
    joining: Joining | None = None
    counters: GrammarCounters = field(default_factory=GrammarCounters)

    def longest_passing_cut(self, middle: bytes, replaced: int = 0) -> int:
        """Return the number of bytes of `middle` to keep: to the last line end that adds no errors to the document.

        Args:
            middle: The completion, including the healed run.
            replaced: Number of bytes after the cursor that it replaces.
        """
        with self.counters.timed():
            if self.joined is None or self.joined.blind():
                return len(middle)
            return self.joined.first_sound(line_ends(middle), middle, replaced)

    def sound_when_joined(self, middle: bytes, missing: Missing, replaced: int = 0) -> bool:
        """Return `Joining.mends` for the completion."""
        with self.counters.timed():
            return self._mends(middle, missing, replaced)

    def _mends(self, middle: bytes, missing: Missing, replaced: int = 0, *, grows: bool = False) -> bool:
        if self.joining is None:
            return missing is Missing.ANYTHING
        return self.joining.mends(middle, missing, replaced, grows=grows)

    def adds_errors(self, middle: bytes, replaced: int = 0) -> bool:
        """Return whether the document has more errors with the completion than without it."""
        with self.counters.timed():
            return self.joined is not None and self.joined.adds_errors(middle, replaced)

    def growing_cut(self, middle: bytes, known: int, missing: Missing = Missing.NOTHING) -> int:
        """Return the number of bytes of an unfinished completion that may be shown; the first `known` are sound."""
        with self.counters.timed():
            if self.joined is None or self.joined.blind():
                return len(middle)
            return self.joined.growing_cut(middle, known, lambda: self._mends(middle, missing, grows=True))
