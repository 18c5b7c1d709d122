"""The grammar of one request: snapshots for draft nodes, and how much of a completion adds no error to the document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from time import perf_counter

from completion.errors import GrammarBoundError, GrammarError, ParseLimitError
from completion.grammar.grammar import Grammar, Grammars
from completion.grammar.joined import JoinedDocument, Verdict, line_ends
from completion.grammar.joining import Joining, Missing
from completion.grammar.lr.advance import Snapshot
from completion.grammar.parsed_documents import open_document, skippable_parts
from completion.request import GrammarMode
from completion.syntax.languages import parsed_row, true_language
from completion.syntax.parsing import IN_PROCESS, Parsing

_MAX_TRIED_TOKENS = 1000
"""Number of tokens tried after one snapshot from which on further ones are rejected."""
_MAX_TRIED_GUESSES = _MAX_TRIED_TOKENS // 2
"""The same for guesses, so that those of drafts leave room for the model's own tokens."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BOUNDARY = re.compile(rb"\n|\"{3}|'{3}|[)\]};\"'`>]")
_WORD_END = re.compile(rb"(?<=[\w$\x80-\xff])(?![\w$\x80-\xff])")


class OffReason(StrEnum):
    """The reason why a request runs without the acceptor; the code of an error that is one."""

    SWITCHED_OFF = "switched_off"
    NO_GRAMMAR = "no_grammar"
    NO_ACCEPTOR = "no_acceptor"
    GRAMMAR_UNSUPPORTED = "grammar_unsupported"
    BROKEN_BEFORE_CURSOR = "broken_before_cursor"
    TOO_LARGE = "grammar_prefix_too_large"
    BOUND = "grammar_bound"
    PARSE_LIMIT = "parse_limit"


_UNPARSED = {OffReason.SWITCHED_OFF, OffReason.NO_GRAMMAR, OffReason.GRAMMAR_UNSUPPORTED, OffReason.PARSE_LIMIT}


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


class GrammarConstraint:
    """The grammar of one request.

    Without an acceptor every token passes, and completions are cut only where tree-sitter understands the document
    around the cursor. Without a grammar nothing is cut. Completions begin with the healed run, which the prefix is
    without. Only the caller's thread uses the grammars.

    Attributes:
        root: Snapshot of the acceptor at the start of the completion; None without an acceptor.
        counters: Counters of the work so far.
    """

    def __init__(
        self,
        grammars: Grammars,
        language: str,
        prefix: str,
        suffix: str,
        mode: GrammarMode,
        healed: str = "",
        parsing: Parsing = IN_PROCESS,
    ) -> None:
        before, after, run = (part.encode("utf-8", "replace") for part in (prefix, suffix, healed))
        before, true = before.removeprefix(_BYTE_ORDER_MARK), true_language(language, prefix, suffix)
        self._document = JoinedDocument(parsing, true, before + run + after, len(before), len(before) + len(run))
        self._grammar: Grammar | None = None
        self._joining: Joining | None = None
        self._is_blind = False
        self.root: Snapshot | None = None
        self.counters = GrammarCounters()
        with self.counters.timed():
            self._off_reason = OffReason.SWITCHED_OFF if mode is GrammarMode.OFF else self._read(grammars)
        self._document.is_beyond_limit = self._off_reason in _UNPARSED

    def _read(self, grammars: Grammars) -> OffReason | None:
        """Load the grammar and read the text before the cursor; return why there is no acceptor."""
        document = self._document
        language, text, start, parsing = document.language, document.text, document.start, document.parsing
        try:
            grammar = grammars.load(language)
            if parsed_row(language) is None:
                return OffReason.NO_GRAMMAR
            self._is_blind = parsing(open_document, language, text, document.end)
            if grammar is None:
                return OffReason.NO_ACCEPTOR
            root = grammar.prefixes.read(
                text[:start],
                lambda: parsing(skippable_parts, language, text, start),
                parsing.raise_if_cancelled,
            )
        except (GrammarError, ParseLimitError) as error:
            return OffReason(error.code)
        self.root = None if root is None else replace(root, next_by_bytes={})
        self._grammar, self._joining = grammar, Joining(grammar, document, self.root)
        return OffReason.BROKEN_BEFORE_CURSOR if root is None else None

    @property
    def off_reason(self) -> OffReason | None:
        """Reason why every token passes from now on; None while the grammar is enforced."""
        return self._off_reason or (OffReason.PARSE_LIMIT if self._document.is_beyond_limit else None)

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

    def _advance(self, snapshot: Snapshot, token_bytes: bytes, *, is_guess: bool = False) -> Snapshot | None:
        if self.off_reason is not None or self._grammar is None:
            return snapshot
        tried = snapshot.next_by_bytes
        if len(tried) >= (_MAX_TRIED_GUESSES if is_guess else _MAX_TRIED_TOKENS):
            return tried.get(token_bytes)
        try:
            return self._grammar.acceptor.advance(snapshot, token_bytes)
        except GrammarBoundError:
            if is_guess:
                return None
            self._off_reason = OffReason.BOUND
            return snapshot

    def longest_passing_cut(
        self, middle: bytes, replaced: int = 0, missing: Missing = Missing.NOTHING, *, tolerant: bool = False
    ) -> int:
        """Return the number of bytes of a completion to keep so that it adds no errors; 0 if all cuts do.

        It begins with the healed run, and replaces so many bytes after the cursor. It stays whole if the document is
        sound with it and what may be missing, or, if `tolerant`, has no more errors than without it.
        """
        with self.counters.timed():
            if self._passes_all(missing):
                return len(middle)
            verdict = self._document.verdict(middle, replaced)
            if verdict is Verdict.SOUND or (tolerant and verdict) or self._mends(middle, missing, replaced):
                return len(middle)
            return self._search_cut(middle, replaced)

    def growing_cut(self, middle: bytes, known: int, missing: Missing = Missing.NOTHING) -> int:
        """Return the number of bytes of an unfinished completion that may be shown; the first `known` are sound."""
        with self.counters.timed():
            if self._passes_all(missing):
                return len(middle)
            return self._document.growing_cut(middle, known, lambda: self._mends(middle, missing, grows=True))

    def _passes_all(self, missing: Missing) -> bool:
        """Return whether nothing is cut: around the cursor nothing is understood, or anything may be missing."""
        if self._joining is None and missing is Missing.ANYTHING:
            return True
        return self.root is None and (self._is_blind or self._document.is_beyond_limit)

    def _mends(self, middle: bytes, missing: Missing, replaced: int = 0, *, grows: bool = False) -> bool:
        """Return `Joining.mends`; False without an acceptor, which knows what is missing."""
        return self._joining is not None and self._joining.mends(middle, missing, replaced, grows=grows)

    def _search_cut(self, middle: bytes, replaced: int) -> int:
        """Return the longest cut that adds no errors: at a closer or line end, else after a word of a single line.

        Where the text after the cursor is broken itself, or the text before it, only the joined parse decides.
        """
        found = self._first_passing(_BOUNDARY, middle, replaced)
        if not found and (self.root is None or self._joining is None or self._joining.is_broken(replaced)):
            lines = [end for end in line_ends(middle) if end > self._document.healed_bytes]
            found = self._document.first_sound(lines, middle, replaced)
        if not found and b"\n" not in middle:
            found = self._first_passing(_WORD_END, middle, replaced)
        return found

    def _first_passing(self, boundary: re.Pattern[bytes], middle: bytes, replaced: int) -> int:
        """Return the longest cut around a boundary that adds no errors; 0 if none does, or if it is not known.

        The healed run is in the document, so no cut is in it.
        """
        if self.root is None or self._joining is None:
            return 0
        ends = {len(middle), *(end for match in boundary.finditer(middle) for end in match.span())}
        offsets = sorted(end for end in ends if end > self._document.healed_bytes)
        return self._document.first_sound(self._joining.cuts(middle, offsets, replaced), middle, replaced)
