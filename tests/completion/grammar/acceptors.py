"""Acceptors of all languages with both lexers, and the grammars of tests, which run on one thread."""

from __future__ import annotations

from functools import cache

from completion.grammar.constraint import GrammarConstraint
from completion.grammar.grammar import Grammars
from completion.grammar.lr.acceptor import Acceptor
from completion.grammar.lr.lexer import Lexer
from completion.grammar.lr.tables import Tables
from completion.request import GrammarMode
from completion.syntax.languages import language_address
from completion.syntax.table import row_of
from tests.completion.grammar.lr.python_lexer import PythonLexer

GRAMMARS = Grammars()
LEXERS = {"python": PythonLexer, "compiled": Lexer}


@cache
def tables_of(language):
    row = row_of(language)
    return Tables(language_address(row.package, row.entry))


@cache
def acceptor_of(language, lexer="compiled"):
    return Acceptor(tables_of(language), LEXERS[lexer](tables_of(language)))


def kept_of(language, prefix, middle, suffix):
    """Return what is kept of a finished completion."""
    constraint = GrammarConstraint(GRAMMARS, language, prefix, suffix, GrammarMode.STRICT)
    return middle[: constraint.longest_passing_cut(middle.encode())]


def stacks_of(snapshot):
    """Return the heads without the scanner's state, which in Rust keeps the unused length of a raw string's fence."""
    return [(head.offset, head.stacks, head.layout) for head in snapshot.heads]
