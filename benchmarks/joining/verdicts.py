"""Two verdicts on a text at a cursor: that of the product, and that of the shortest insertion."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from itertools import islice
from time import process_time

from benchmarks.grammar.grammars import GRAMMARS
from benchmarks.joining.grammar import InsertionGrammar
from benchmarks.joining.joins import Join, Joining, Missing
from benchmarks.joining.shortest import Shortest
from benchmarks.joining.triples import Kind, Triple
from completion.closing.closing_texts import as_before_code
from completion.decoding.constraints import open_grammar
from completion.decoding.finishing import Finisher
from completion.ending.context import Context
from completion.ending.mode import cursor_context
from completion.errors import GrammarBoundError
from completion.grammar.joined_document import JoinedDocument
from completion.grammar.no_acceptor import NoAcceptor
from completion.prompt.healing import HealedPrefix
from completion.request import CompletionRequest, Mode, StopReason, Suggestion
from completion.syntax.parsing import IN_PROCESS

_MAX_JOINS = 8  # insertions with which one text is parsed in its document, the cheapest first
_LOG_PROBABILITY = -1.0  # of a text: too unlikely to open something in a manual request


class Verdict(Enum):
    """Whether a text is kept whole. One that is not known is kept."""

    CUT = 0
    KEPT = 1
    UNKNOWN = 2


class Searcher:
    """The search of one language.

    Attributes:
        grammar: The language's grammar.
        shortest: The search.
        table_ms: Processor time of the build of its table, in milliseconds.
    """

    def __init__(self, language: str) -> None:
        self.grammar = InsertionGrammar.of(language)
        started = process_time()
        self.shortest = Shortest(self.grammar)
        self.table_ms = 1000 * (process_time() - started)


class Cursor:
    """The document around one cursor, for the verdicts on the texts there.

    Args:
        searcher: Search of the document's language.
        prefix: Text before the cursor.
        suffix: Text after the cursor.
        language: LSP language identifier.
    """

    def __init__(self, searcher: Searcher, prefix: str, suffix: str, language: str) -> None:
        self._searcher, self._prefix, self._suffix, self._language = searcher, prefix, suffix, language
        self._before, self._after = prefix.encode(), suffix.encode()
        at = len(self._before)
        self._joined = JoinedDocument(IN_PROCESS, language, self._before + self._after, at, at)

    @cached_property
    def _joining(self) -> Joining:
        grammar = self._searcher.grammar
        grammar.acceptor.trim()
        start = grammar.acceptor.start()
        root = grammar.acceptor.read(start, self._before) or grammar.read_sound_lines(self._before)
        return Joining(self._searcher.shortest, grammar.acceptor, root, self._after, self._joined.sound)

    def verdicts(self, triple: Triple, *, invoked: bool) -> tuple[Verdict, Verdict]:
        """Return the verdicts of the product and of the shortest insertion on a text at the cursor.

        Args:
            triple: The text with the cursor. A start of a longer text is one that still grows.
            invoked: Whether the request is manual.
        """
        finisher = self._finisher(triple.text, invoked)
        if triple.kind is Kind.START:
            is_kept = finisher.visible_part(triple.text, "") == triple.text
        else:
            result = finisher.finish(
                Suggestion(triple.text, token_log_probabilities=(_LOG_PROBABILITY,)), StopReason.LINE_END
            )
            is_kept = isinstance(result, Suggestion) and result.text == triple.text
        by_product = Verdict.KEPT if is_kept else Verdict.CUT
        try:
            by_insertion = self._is_kept(triple, self._finisher(triple.text, invoked))
        except GrammarBoundError:
            return by_product, Verdict.UNKNOWN
        return by_product, Verdict.KEPT if by_insertion else Verdict.CUT

    def _finisher(self, text: str, invoked: bool) -> Finisher:
        """Return what finishes a text without the rules of where it ends: only the grammar decides."""
        mode = Mode.BLOCK if "\n" in text else Mode.LINE
        request = CompletionRequest(
            self._prefix, self._suffix, self._language, mode=mode, invoked=invoked, filters=False
        )
        grammar = open_grammar(request, HealedPrefix(self._prefix, ""), GRAMMARS)
        return Finisher(request, cursor_context(request), grammar, b"")

    def _is_kept(self, triple: Triple, finisher: Finisher) -> bool:
        """Return whether a text is kept: as in the product, with insertions in place of the texts that may close it.

        Raises:
            GrammarBoundError: It is not known.
        """
        middle, grammar = triple.text.encode(), finisher.grammar
        if isinstance(grammar, NoAcceptor) and (grammar.joined is None or self._joined.blind()):
            return True
        joins = self._joining.joins(middle, _may_be_missing(triple.text, finisher.context))
        if triple.kind is Kind.START:
            return not self._joined.adds_errors(middle) or self._mends(middle, joins)
        if grammar.longest_passing_cut(middle) == len(middle) or self._mends(middle, joins):
            return True
        return not finisher.context.invoked and not self._joined.adds_errors(middle)

    def _mends(self, middle: bytes, joins: Iterator[Join]) -> bool:
        """Return whether the document is sound with a text and one of its first joins."""
        return any(self._joined.mends(middle + text, replaced) for text, replaced in islice(joins, _MAX_JOINS))


def _may_be_missing(text: str, context: Context) -> Missing:
    """Return how much may be missing after a text.

    What the user has opened may stay open. What the text itself opens may not in a manual request, nor before code on
    the cursor's line.
    """
    if not as_before_code(context).invoked:
        return Missing.ANYTHING
    return Missing.NOTHING if context.scan(text).open else Missing.AS_BEFORE
