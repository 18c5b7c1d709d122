"""How terminals are written: what a search for missing terminals inserts, and what it costs."""

from __future__ import annotations

from completion.grammar.lr.acceptor import Acceptor
from completion.grammar.lr.lexer import NO_SYMBOL
from completion.grammar.lr.tables import END_SYMBOL, LexMode

_COST, _LONG_COST = 2, 3  # of a terminal of one character; of others: of two ways, the one with fewer of them is taken
_SAMPLES = (b"a", b"0", b"\n", b"''", b'""', b'"', b"'", b"`")  # of terminals that are patterns
ENDS = (b"\n", b"*/", b'"', b"'", b"`", b'"""', b"'''", b'"#', b')"', b">", b"</")
"""Texts that end an unfinished lexeme: a comment, a string, a raw string, the name of a header, text between tags."""


class Spellings:
    """The spellings of one grammar's terminals.

    Attributes:
        texts: Spelling of each terminal that has one by itself.
        costs: Cost of inserting each terminal; negative for one that cannot be inserted.
    """

    def __init__(self, acceptor: Acceptor) -> None:
        tables, layout = acceptor.machine.tables, acceptor.layout
        self._tables, self._lexer = tables, acceptor.lexer
        scanned = set(tables.external_symbols)
        self.texts = dict(acceptor.literals.spellings)
        marks = (tables.symbol_name(symbol) for symbol in scanned if symbol < tables.token_count)
        self._add_samples((*_SAMPLES, *(mark.encode() for mark in marks if not mark.replace("_", "").isalnum())))
        self._blocks = {symbol for symbol, cost in layout.costs.items() if cost}
        self.texts = {symbol: text for symbol, text in self.texts.items() if symbol not in layout.costs}
        lengths = {**dict.fromkeys(scanned, 0), **{symbol: len(text) for symbol, text in self.texts.items()}}
        prices = {symbol: _COST if length == 1 else _LONG_COST for symbol, length in lengths.items()}
        prices |= layout.costs
        self.costs = [prices.get(symbol, -1) for symbol in range(tables.token_count)]

    def _add_samples(self, samples: tuple[bytes, ...]) -> None:
        """Add the samples that the lexer takes for a terminal without a spelling."""
        modes = {self._tables.lex_mode(state) for state in range(1, self._tables.state_count)}
        for sample in samples:
            self._lexer.load(sample + b" ", 0)
            for mode in modes:
                lexeme = self._lexer.lex(mode, 0, self._lexer.initial_state)
                if lexeme.symbol > END_SYMBOL and lexeme.end == len(sample):
                    self.texts.setdefault(lexeme.symbol, sample)

    def firsts(self, text: bytes) -> frozenset[int]:
        """Return the terminals that a text may begin with: its first one, and a line break or block before it.

        The end of a file counts as a terminal. Comments and whitespace are skipped.
        """
        breaks = {symbol for symbol, spelling in self.texts.items() if spelling == b"\n"}
        found = breaks | self._blocks if text.lstrip(b" \t\r").startswith(b"\n") else set()
        mode, offset = LexMode(self._tables.lex_mode(0).lex_state, 0, 0), 0  # state 0 takes every terminal
        self._lexer.load(text, 0)
        while offset < len(text):
            lexeme = self._lexer.lex(mode, offset, self._lexer.initial_state)
            if lexeme.symbol == NO_SYMBOL or lexeme.end <= offset:
                break
            offset = lexeme.end
            if lexeme.symbol not in breaks and not self._is_extra(lexeme.symbol):
                return frozenset({*found, lexeme.keyword or lexeme.symbol, lexeme.symbol})
        return frozenset({*found, END_SYMBOL})

    def _is_extra(self, symbol: int) -> bool:
        """Return whether a terminal may stand anywhere, as comments do."""
        return any(action.extra for action in self._tables.actions(1, symbol))
