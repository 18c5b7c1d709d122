"""The grammar of one request: snapshots for draft nodes, and how much of a completion adds no error to the document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

from completion.errors import GrammarBoundError, GrammarUnsupportedError, ParseLimitError, PrefixTooLargeError
from completion.grammar.grammar import Grammar, Grammars
from completion.grammar.joined_document import MAX_JOINED_PARSES, JoinedDocument
from completion.grammar.joining import Joining, Missing
from completion.grammar.lr.advance import Snapshot
from completion.grammar.no_acceptor import GrammarCounters, NoAcceptor, OffReason
from completion.grammar.parsed_documents import cache_document, skippable_prefix_parts
from completion.grammar.suffix_check import SuffixCheck, cut_offsets, line_ends, passing_offsets, word_ends
from completion.request import GrammarMode
from completion.syntax.languages import true_language
from completion.syntax.parsing import IN_PROCESS, Parsing

_MAX_TRIED_TOKENS = 1000
"""Number of tokens tried after one snapshot from which on further ones are rejected."""
_MAX_TRIED_GUESSES = _MAX_TRIED_TOKENS // 2
"""The same for guesses, so that those of drafts leave room for the model's own tokens."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class GrammarConstraint:
    """The acceptor of one request.

    Attributes:
        root: Snapshot at the start of the completion.
        counters: Counters of the work so far.
    """

    def __init__(self, grammar: Grammar, root: Snapshot, suffix: bytes, joined: JoinedDocument) -> None:
        self._grammar, self._joined = grammar, joined
        self._suffix_bytes = suffix
        self._suffix = SuffixCheck(grammar.acceptor, suffix)
        self._joining = Joining(grammar.shortest, grammar.acceptor, lambda: root, joined)
        self.root = root
        self.counters = GrammarCounters()
        self._is_beyond_bound = False

    @classmethod
    def open(
        cls,
        grammars: Grammars,
        language: str,
        prefix: str,
        suffix: str,
        mode: GrammarMode,
        healed: str = "",
        parsing: Parsing = IN_PROCESS,
    ) -> RequestGrammar:
        """Open the constraint of a request.

        Args:
            grammars: The loaded grammars, which only the caller's thread uses.
            language: LSP language identifier.
            prefix: Text before the cursor without the healed run.
            suffix: Text after the cursor.
            mode: The user's setting.
            healed: The healed run, with which the completion begins.
            parsing: Runs the functions that parse whole documents.

        Returns:
            The constraint, or why the request has none.
        """
        started = perf_counter()
        if mode is GrammarMode.OFF:
            return NoAcceptor(OffReason.SWITCHED_OFF)
        true = true_language(language, prefix, suffix)
        try:
            grammar = grammars.load(true)
        except GrammarUnsupportedError:
            return NoAcceptor(OffReason.GRAMMAR_UNSUPPORTED)
        if grammar is None:
            return NoAcceptor(OffReason.NO_GRAMMAR)
        before, after, run = (part.encode("utf-8", "replace") for part in (prefix, suffix, healed))
        before = before.removeprefix(_BYTE_ORDER_MARK)
        joined = JoinedDocument(parsing, true, before + run + after, len(before), len(before) + len(run))
        opened = cls._open(grammar, joined, after)
        opened.counters.elapsed_ms += 1000 * (perf_counter() - started)
        return opened

    @classmethod
    def _open(cls, grammar: Grammar, joined: JoinedDocument, suffix: bytes) -> RequestGrammar:
        text, start = joined.text, joined.start
        try:
            joined.parsing(cache_document, joined.language, text)
            root = grammar.prefixes.read(
                text[:start],
                lambda: joined.parsing(skippable_prefix_parts, joined.language, text, start),
                joined.parsing.raise_if_cancelled,
            )
        except ParseLimitError:
            return NoAcceptor(OffReason.PARSE_LIMIT)
        except PrefixTooLargeError:
            return NoAcceptor(OffReason.TOO_LARGE, joined)
        except GrammarBoundError:
            return NoAcceptor(OffReason.BOUND, joined)
        if root is None:
            prefixes, before = grammar.prefixes, text[:start]
            joining = Joining(grammar.shortest, grammar.acceptor, lambda: prefixes.read_sound_lines(before), joined)
            return NoAcceptor(OffReason.BROKEN_BEFORE_CURSOR, joined, joining)
        return cls(grammar, replace(root, next_by_bytes={}), suffix, joined)

    def advance(self, snapshot: Snapshot, token_bytes: bytes, *, is_guess: bool = False) -> Snapshot | None:
        """Return the snapshot after a token; None if no valid file continues with its bytes.

        A token beyond the grammar's bounds ends the grammar, unless it `is_guess`: then the result is None.
        """
        started = perf_counter()
        after = self._advance(snapshot, token_bytes, is_guess=is_guess)
        self.counters.checks += 1
        self.counters.rejections += after is None
        self.counters.elapsed_ms += 1000 * (perf_counter() - started)
        return after

    @property
    def off_reason(self) -> OffReason | None:
        """Reason why every token passes from now on; None while the grammar is enforced."""
        if self._is_beyond_bound:
            return OffReason.BOUND
        return OffReason.PARSE_LIMIT if self._joined.is_beyond_limit else None

    def _advance(self, snapshot: Snapshot, token_bytes: bytes, *, is_guess: bool = False) -> Snapshot | None:
        if self.off_reason is not None:
            return snapshot
        tried = snapshot.next_by_bytes
        if len(tried) >= (_MAX_TRIED_GUESSES if is_guess else _MAX_TRIED_TOKENS):
            return tried.get(token_bytes)
        try:
            return self._grammar.acceptor.advance(snapshot, token_bytes)
        except GrammarBoundError:
            if is_guess:
                return None
            self._is_beyond_bound = True
            return snapshot

    def longest_passing_cut(self, middle: bytes, replaced: int = 0) -> int:
        """Return the number of bytes of `middle` to keep so that it adds no errors to the document; 0 if all cuts do.

        If the suffix parses after no cut, the suffix can be broken itself. Then only the joined parse decides.

        Args:
            middle: The completion, including the healed run.
            replaced: Number of bytes after the cursor that it replaces.
        """
        with self.counters.timed():
            return len(middle) if self._joined.sound(middle, replaced) else self._search_cut(middle, replaced)

    def sound_when_joined(self, middle: bytes, missing: Missing, replaced: int = 0) -> bool:
        """Return `Joining.mends` for the completion."""
        with self.counters.timed():
            return self._joining.mends(middle, missing, replaced)

    def adds_errors(self, middle: bytes, replaced: int = 0) -> bool:
        """Return whether the document has more errors with the completion than without it."""
        with self.counters.timed():
            return self._joined.adds_errors(middle, replaced)

    def growing_cut(self, middle: bytes, known: int, missing: Missing = Missing.NOTHING) -> int:
        """Return the number of bytes of an unfinished completion that may be shown; the first `known` are sound.

        Args:
            middle: The completion so far, including the healed run.
            known: Number of bytes that are sound.
            missing: How much may be missing after them.
        """
        with self.counters.timed():
            return self._joined.growing_cut(middle, known, lambda: self._joining.mends(middle, missing, grows=True))

    def _suffix_after(self, replaced: int) -> SuffixCheck:
        """Return the check of the text after the cursor without its first `replaced` bytes."""
        return SuffixCheck(self._grammar.acceptor, self._suffix_bytes[replaced:]) if replaced else self._suffix

    def _search_cut(self, middle: bytes, replaced: int) -> int:
        suffix = self._suffix_after(replaced)
        if self._suffix_parses_after(middle, suffix) and not self._joined.adds_errors(middle, replaced):
            return len(middle)
        closers, lines, words = map(self._after_healed, (cut_offsets(middle), line_ends(middle), word_ends(middle)))
        found = self._first_passing(middle, replaced, suffix, closers)
        if found is None:  # the suffix can be broken itself
            found = self._joined.first_sound(lines, middle, replaced)
        return found or self._first_passing(middle, replaced, suffix, words) or 0

    def _after_healed(self, offsets: Sequence[int]) -> list[int]:
        """Return the offsets after the healed run, which is in the document: a cut in it keeps nothing."""
        return [offset for offset in offsets if offset > self._joined.end - self._joined.start]

    def _first_passing(self, middle: bytes, replaced: int, suffix: SuffixCheck, offsets: list[int]) -> int | None:
        """Return the longest of `offsets` that adds no errors; 0 if none does, None if the suffix parses after none."""
        tries = 0
        check = self._joined.parsing.raise_if_cancelled
        for offset in passing_offsets(self._grammar.acceptor, self.root, middle, suffix, offsets, check):
            if not self._joined.adds_errors(middle[:offset], replaced):
                return offset
            tries += 1
            if tries == MAX_JOINED_PARSES:
                break
        return 0 if tries else None

    def _suffix_parses_after(self, middle: bytes, suffix: SuffixCheck) -> bool:
        """Return whether the suffix parses after all of `middle`."""
        try:
            after = self._grammar.acceptor.read(self.root, middle)
        except GrammarBoundError:
            return False
        return after is not None and suffix.passes(after)


RequestGrammar = GrammarConstraint | NoAcceptor
"""The grammar of a request, with an acceptor or without one. Both cut what adds errors to the document."""
