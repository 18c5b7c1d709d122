"""The grammar as the engine sees it: snapshots for draft nodes, and where a completion may end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from time import perf_counter

from completion.errors import GrammarBoundError, GrammarUnsupportedError, ParseLimitError, PrefixTooLargeError
from completion.grammar.documents import finished_parts, read_document
from completion.grammar.grammar import Grammar, load_grammar
from completion.grammar.joined_document import JoinedDocument
from completion.grammar.lr.advance import Snapshot
from completion.grammar.suffix_check import SuffixCheck, cut_offsets, line_ends, passing_offsets, word_ends
from completion.request import GrammarMode
from completion.syntax.languages import true_language
from completion.syntax.parser_process import IN_PROCESS, Parsing

_MAX_JOINED_PARSES = 8
_MAX_GROWING_PARSES = 2  # of an unfinished text: there is another chance at its next step
_GROWTH_BYTES = 16  # so much more of a line is worth another look at the joined document
_MAX_TRIED_TOKENS = 1000  # at one place; where the thousand best do not fit, the search for one that does ends
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class OffReason(StrEnum):
    """Why a request runs without the acceptor."""

    SWITCHED_OFF = "switched_off"
    NO_GRAMMAR = "no_grammar"
    GRAMMAR_UNSUPPORTED = "grammar_unsupported"
    BROKEN_BEFORE_CURSOR = "broken_before_cursor"
    TOO_LARGE = "too_large"
    BOUND = "bound"
    PARSE_LIMIT = "parse_limit"


@dataclass(slots=True)
class GrammarCounters:
    """What the grammar did for a request.

    Attributes:
        checks: Tokens that were looked at.
        rejections: Tokens that cannot stand where they were proposed.
        elapsed_ms: Time spent, opening and cutting included.
    """

    checks: int = 0
    rejections: int = 0
    elapsed_ms: float = 0.0


@dataclass(slots=True)
class Off:
    """No acceptor for this request, and why. The joined parse may still cut, where the language has a grammar."""

    reason: OffReason
    joined: JoinedDocument | None = None
    counters: GrammarCounters = field(default_factory=GrammarCounters)

    def longest_passing_cut(self, middle: bytes, replaced: int = 0) -> int:
        """Bytes of `middle` to keep: up to the last line end at which the document has no more errors than before.

        Args:
            middle: The completion, healed run included.
            replaced: How many bytes after the cursor it replaces.
        """
        started = perf_counter()
        cut = len(middle) if self.joined is None else _first_sound(line_ends(middle), middle, replaced, self.joined)
        self.counters.elapsed_ms += 1000 * (perf_counter() - started)
        return cut

    def sound_when_closed(self, middle: bytes, closers: bytes, replaced: int = 0) -> bool:  # noqa: ARG002
        """Without an acceptor nobody knows whether later lines could close it."""
        return False

    def growing_cut(self, middle: bytes, known: int) -> int:
        """Bytes of an unfinished completion that may be shown; `known` of them were found to be sound before."""
        started = perf_counter()
        cut = len(middle) if self.joined is None else _growing_cut(middle, known, self.joined)
        self.counters.elapsed_ms += 1000 * (perf_counter() - started)
        return cut


class GrammarConstraint:
    """The acceptor of one request.

    Attributes:
        root: The snapshot at the start of the completion.
        counters: What was done so far.
    """

    def __init__(self, grammar: Grammar, root: Snapshot, suffix: bytes, joined: JoinedDocument) -> None:
        self._grammar, self._joined = grammar, joined
        self._after = suffix
        self._suffix = SuffixCheck(grammar.acceptor, suffix)
        self.root = root
        self.counters = GrammarCounters()
        self._is_beyond_bound = False

    @classmethod
    def open(
        cls,
        language: str,
        prefix: str,
        suffix: str,
        mode: GrammarMode,
        healed: str = "",
        parsing: Parsing = IN_PROCESS,
    ) -> GrammarConstraint | Off:
        """Begin a request.

        Args:
            language: LSP language identifier.
            prefix: Text before the completion: the document's text before the cursor without the healed run.
            suffix: Text after the cursor.
            mode: The setting.
            healed: The run that was taken off the prefix: the completion begins with it.
            parsing: Calls what parses whole documents.
        """
        started = perf_counter()
        if mode is GrammarMode.OFF:
            return Off(OffReason.SWITCHED_OFF)
        true = true_language(language, prefix, suffix)
        try:
            grammar = load_grammar(true)
        except GrammarUnsupportedError:
            return Off(OffReason.GRAMMAR_UNSUPPORTED)
        if grammar is None:
            return Off(OffReason.NO_GRAMMAR)
        before, after, run = (part.encode("utf-8", "replace") for part in (prefix, suffix, healed))
        before = before.removeprefix(_BYTE_ORDER_MARK)
        joined = JoinedDocument(parsing, true, before + run + after, len(before), len(before) + len(run))
        opened = cls._open(grammar, joined, after)
        opened.counters.elapsed_ms += 1000 * (perf_counter() - started)
        return opened

    @classmethod
    def _open(cls, grammar: Grammar, joined: JoinedDocument, suffix: bytes) -> GrammarConstraint | Off:
        text, start = joined.text, joined.start
        try:
            joined.parsing(read_document, joined.language, text)
            root = grammar.prefixes.read(
                text[:start],
                lambda: joined.parsing(finished_parts, joined.language, text, start),
                joined.parsing.raise_if_cancelled,
            )
        except ParseLimitError:
            return Off(OffReason.PARSE_LIMIT)
        except PrefixTooLargeError:
            return Off(OffReason.TOO_LARGE, joined)
        except GrammarBoundError:
            return Off(OffReason.BOUND, joined)
        if root is None:
            return Off(OffReason.BROKEN_BEFORE_CURSOR, joined)
        return cls(grammar, replace(root, next_by_bytes={}), suffix, joined)

    def advance(self, snapshot: Snapshot, token_bytes: bytes) -> Snapshot | None:
        """The snapshot after a token; None if no text of the language goes on with these bytes."""
        started = perf_counter()
        after = self._advance(snapshot, token_bytes)
        self.counters.checks += 1
        self.counters.rejections += after is None
        self.counters.elapsed_ms += 1000 * (perf_counter() - started)
        return after

    @property
    def off_reason(self) -> OffReason | None:
        """Why everything passes from now on; None while the grammar holds."""
        if self._is_beyond_bound:
            return OffReason.BOUND
        return OffReason.PARSE_LIMIT if self._joined.is_beyond_limit else None

    def _advance(self, snapshot: Snapshot, token_bytes: bytes) -> Snapshot | None:
        if self.off_reason is not None:
            return snapshot
        tried = snapshot.next_by_bytes
        if len(tried) >= _MAX_TRIED_TOKENS:
            return tried.get(token_bytes)
        try:
            return self._grammar.acceptor.advance(snapshot, token_bytes)
        except GrammarBoundError:
            self._is_beyond_bound = True
            return snapshot

    def may_end(self, snapshot: Snapshot) -> bool:
        """Whether the completion may end here: the text after the cursor parses on."""
        started = perf_counter()
        verdict = self.off_reason is not None or self._suffix.passes(snapshot)
        self.counters.elapsed_ms += 1000 * (perf_counter() - started)
        return verdict

    def longest_passing_cut(self, middle: bytes, replaced: int = 0) -> int:
        """Bytes of `middle` to keep so that the document has no more errors than before; 0 if no cut does.

        Where no cut lets the suffix parse on, the suffix may be broken itself: then the joined parse alone decides.

        Args:
            middle: The completion, healed run included.
            replaced: How many bytes after the cursor it replaces.
        """
        started = perf_counter()
        cut = len(middle) if self._joined.sound(middle, replaced) else self._search_cut(middle, replaced)
        self.counters.elapsed_ms += 1000 * (perf_counter() - started)
        return cut

    def sound_when_closed(self, middle: bytes, closers: bytes, replaced: int = 0) -> bool:
        """Whether the completion can stand in the language, and the document has no error with `closers` behind it."""
        started = perf_counter()
        after = self._advance(self.root, middle)
        verdict = after is not None and self._joined.sound(middle + closers, replaced)
        self.counters.elapsed_ms += 1000 * (perf_counter() - started)
        return verdict

    def growing_cut(self, middle: bytes, known: int) -> int:
        """Bytes of an unfinished completion that may be shown; `known` of them were found to be sound before."""
        started = perf_counter()
        cut = _growing_cut(middle, known, self._joined)
        self.counters.elapsed_ms += 1000 * (perf_counter() - started)
        return cut

    def _search_cut(self, middle: bytes, replaced: int) -> int:
        suffix = self._suffix if not replaced else SuffixCheck(self._grammar.acceptor, self._after[replaced:])
        if self._reaches(middle, suffix) and not self._joined.adds_errors(middle, replaced):
            return len(middle)
        found = self._first_passing(middle, replaced, suffix, cut_offsets(middle))
        if found is None:  # the suffix may be broken itself
            found = _first_sound(line_ends(middle), middle, replaced, self._joined)
        return found or self._first_passing(middle, replaced, suffix, word_ends(middle)) or 0

    def _first_passing(self, middle: bytes, replaced: int, suffix: SuffixCheck, offsets: list[int]) -> int | None:
        """The longest of `offsets` that leaves the document sound, 0 if none does; None if no suffix parses on."""
        tries = 0
        check = self._joined.parsing.raise_if_cancelled
        for offset in passing_offsets(self._grammar.acceptor, self.root, middle, suffix, offsets, check):
            if not self._joined.adds_errors(middle[:offset], replaced):
                return offset
            tries += 1
            if tries == _MAX_JOINED_PARSES:
                break
        return 0 if tries else None

    def _reaches(self, middle: bytes, suffix: SuffixCheck) -> bool:
        """Whether the suffix parses on behind all of `middle`."""
        try:
            after = self._grammar.acceptor.read(self.root, middle)
        except GrammarBoundError:
            return False
        return after is not None and suffix.passes(after)


def _first_sound(offsets: list[int], middle: bytes, replaced: int, joined: JoinedDocument) -> int:
    for offset in offsets[:_MAX_JOINED_PARSES]:
        if not joined.adds_errors(middle[:offset], replaced):
            return offset
    return 0


def _growing_cut(middle: bytes, known: int, joined: JoinedDocument) -> int:
    """All of `middle` if the document stands it, or its last lines' ends behind `known`, or `known`.

    Looked at only now and then: at first, at a new line, and when some more text has come.
    """
    if len(middle) < joined.tried + _GROWTH_BYTES and b"\n" not in middle[max(0, joined.tried) :]:
        return known
    joined.tried = len(middle)
    offsets = [offset for offset in line_ends(middle) if offset > known]
    return _first_sound(offsets[:_MAX_GROWING_PARSES], middle, 0, joined) or known
