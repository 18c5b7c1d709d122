"""The parts of one language's grammar that a search for insertions needs, apart from those that the product keeps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tree_sitter import Language

from benchmarks.joining.layout import FreeInsertions, IndentedInsertions, InsertedLayout
from completion.grammar.lr.acceptor import Acceptor
from completion.grammar.lr.advance import Snapshot
from completion.grammar.lr.compiled_lexer import CompiledLexer
from completion.grammar.lr.lexer import Lexer
from completion.grammar.lr.literals import Literals
from completion.grammar.lr.tables import Tables
from completion.syntax.languages import LANGUAGES, language_address, tree_sitter_language

_MAX_WORD_BYTES = 40  # of a keyword; ends the search in a lexer that takes ever more letters


@dataclass(frozen=True, eq=False)
class InsertionGrammar:
    """One language's tables with the parts that read them. Not thread-safe: the lexer holds one text."""

    language: Language
    tables: Tables
    lexer: Lexer
    layout: InsertedLayout
    acceptor: Acceptor
    literals: Literals

    @classmethod
    def of(cls, language: str) -> InsertionGrammar:
        """Load the grammar of an LSP language identifier."""
        row = LANGUAGES[language]
        found = tree_sitter_language(row.package, row.entry)
        tables = Tables(language_address(row.package, row.entry))
        lexer = CompiledLexer(tables)
        layout = IndentedInsertions(tables, found.node_kind_count) if row.indented else FreeInsertions()
        acceptor = Acceptor(tables, lexer, layout)
        acceptor.warm_up()
        return cls(found, tables, lexer, layout, acceptor, Literals(tables, lexer))

    @property
    def symbol_count(self) -> int:
        """Number of symbols, other names of them included."""
        return self.language.node_kind_count

    @cached_property
    def spellings(self) -> dict[int, bytes]:
        """The spelling of each keyword and operator, by its terminal."""
        named = {symbol: self.tables.literal(symbol) for symbol in range(self.tables.token_count)}
        return {symbol: text for symbol, text in (*named.items(), *self._keywords()) if text}

    def _keywords(self) -> Iterator[tuple[int, bytes]]:
        """Yield every keyword's symbol and spelling."""
        alive = [b""]
        while alive:
            start = alive.pop()
            for letter, keyword, goes_on in self.lexer.next_letters(start):
                text = start + bytes([letter])
                if keyword:
                    yield keyword, text
                if goes_on and len(text) < _MAX_WORD_BYTES:
                    alive.append(text)

    def symbols_after(self, state: int) -> list[int]:
        """Return the terminals and non-terminals that can follow in a parse state."""
        found = self.language.lookahead_iterator(state)
        return [] if found is None else sorted(set(found.symbols()))

    def read_sound_lines(self, text: bytes) -> Snapshot | None:
        """Return the snapshot after a text without the lines that cannot follow those before them.

        None if the last line is such a line.

        Raises:
            GrammarBoundError: The text exceeds a bound of the parser.
        """
        snapshot = self.acceptor.start()
        *lines, last = text.split(b"\n")
        for line in lines:
            snapshot = self.acceptor.read(snapshot, line + b"\n") or snapshot
        return self.acceptor.read(snapshot, last)
