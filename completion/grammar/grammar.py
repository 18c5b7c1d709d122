"""A loaded grammar: its tables, acceptor and remembered prefixes; and the loaded grammars of one engine."""

from __future__ import annotations

from collections.abc import Collection

from completion.grammar.indentation import IndentationRule
from completion.grammar.lr.acceptor import Acceptor
from completion.grammar.lr.lexer import Lexer
from completion.grammar.lr.tables import Tables
from completion.grammar.prefix_memory import PrefixMemory
from completion.grammar.shortest import Shortest
from completion.memory import drop_library, trim_heap
from completion.syntax.languages import language_address, parsed_row
from completion.syntax.table import Row, row_of


class Grammar:
    """The parts of one language's grammar that a constraint needs. Not thread-safe."""

    def __init__(self, row: Row) -> None:
        self.tables = Tables(language_address(row.package, row.entry))
        rule = IndentationRule(self.tables) if row.indented else None
        self.acceptor = Acceptor(self.tables, Lexer(self.tables), rule)
        self.acceptor.warm_up()
        self.prefixes = PrefixMemory(self.acceptor)
        self.shortest = Shortest(self.acceptor)

    @property
    def size_bytes(self) -> int:
        """Approximate memory of the Python objects, within a third. May be read on any thread."""
        return sum(part.size_bytes for part in (self.tables, self.acceptor, self.prefixes, self.shortest))


class Grammars:
    """The grammars that one engine has loaded. The packages' tables are shared; lexers, stacks and caches are not.

    Not thread-safe, apart from `size_bytes`: engines on several threads have one each.
    """

    def __init__(self) -> None:
        self._loaded: dict[str, Grammar] = {}

    def load(self, language: str) -> Grammar | None:
        """Return the grammar of an LSP language identifier; None for a language without an acceptor.

        Raises:
            GrammarUnsupportedError: The grammar's package is damaged or has an unsupported ABI version.
        """
        row = parsed_row(language)
        if language not in self._loaded and row is not None and row.acceptor:
            self._loaded[language] = Grammar(row)
            trim_heap()  # a large grammar's tables are made from some 40 MB
        return self._loaded.get(language)

    def keep(self, used: Collection[str]) -> None:
        """Unload the grammars of all languages but the used ones; a running request keeps its own."""
        for language in self._loaded.keys() - set(used):
            del self._loaded[language]
            drop_library(row_of(language).package)

    @property
    def size_bytes(self) -> int:
        """Approximate memory of all loaded grammars. May be read on any thread."""
        return sum(grammar.size_bytes for grammar in list(self._loaded.values()))
