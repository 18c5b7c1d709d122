"""Acceptors of every language, with both lexers."""

from __future__ import annotations

from functools import cache

from completion.grammar.acceptor import Acceptor
from completion.grammar.compiled_lexer import CompiledLexer
from completion.grammar.languages import LANGUAGES, language_address
from completion.grammar.lexer import PythonLexer
from completion.grammar.tables import Tables

LEXERS = {"python": PythonLexer, "compiled": CompiledLexer}


@cache
def tables_of(language):
    row = LANGUAGES[language]
    return Tables(language_address(row.package, row.entry))


@cache
def acceptor_of(language, lexer="compiled"):
    return Acceptor(tables_of(language), LEXERS[lexer](tables_of(language)))
