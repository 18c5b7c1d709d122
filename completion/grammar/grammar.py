"""A loaded grammar: its tables, lexer, acceptor and tree-sitter parser."""

from __future__ import annotations

from functools import cache

from completion.grammar.documents import Documents
from completion.grammar.indentation import IndentationRule
from completion.grammar.lr.acceptor import Acceptor
from completion.grammar.lr.compiled_lexer import CompiledLexer
from completion.grammar.lr.tables import Tables
from completion.grammar.prefix_memory import PrefixMemory
from completion.syntax.languages import LANGUAGES, LanguageRow, language_address


class Grammar(Documents):
    """The parts of one language's grammar that a constraint needs. Loaded once in a process; not thread-safe."""

    def __init__(self, row: LanguageRow) -> None:
        super().__init__(row)
        self.tables = Tables(language_address(row.package, row.entry))
        rule = IndentationRule(self.tables) if row.indented else None
        self.acceptor = Acceptor(self.tables, CompiledLexer(self.tables), rule)
        self.acceptor.warm_up()
        self.prefixes = PrefixMemory(self.acceptor)


@cache
def load_grammar(language: str) -> Grammar | None:
    """Return the grammar of an LSP language identifier; None for a language without a grammar.

    Raises:
        GrammarUnsupportedError: The grammar's package is missing or has an unsupported ABI version.
    """
    row = LANGUAGES.get(language)
    return None if row is None else Grammar(row)
