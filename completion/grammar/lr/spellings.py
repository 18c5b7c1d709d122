"""How terminals are written: keywords and operators by their beginnings, and what an insertion writes for each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from completion.grammar.lr.advance import LayoutRule
from completion.grammar.lr.lexer import NO_SYMBOL, Lexer
from completion.grammar.lr.tables import END_SYMBOL, LexMode, Tables

_MAX_WORD_BYTES = 40  # of a keyword; ends the search in a lexer that takes ever more letters
_START_BYTES = 400  # of a beginning with the set of its terminals
_COST, _LONG_COST = 2, 3  # of a terminal of one character; of others: of two ways, the one with fewer of them is taken
_SAMPLES = (b"a", b"0", b"\n", b"''", b'""', b'"', b"'", b"`")  # of terminals that are patterns
ENDS = (b"\n", b"*/", b'"', b"'", b"`", b'"""', b"'''", b'"#', b')"', b">", b"</")
"""Texts that end an unfinished lexeme: a comment, a string, a raw string, the name of a header, text between tags."""


class Literals:
    """Finds the keywords and operators that begin with given bytes.

    The name of an anonymous terminal is its spelling. A keyword can also be a named rule (`mutable_specifier` is "mut"
    in Rust), so the first use enumerates all words of the keyword lexer, letter by letter.
    """

    def __init__(self, tables: Tables, lexer: Lexer) -> None:
        self._tables, self._lexer = tables, lexer
        self._in_any_case = False  # whether there are keywords that may be written in small letters and capitals

    def beginning_with(self, start: bytes) -> frozenset[int]:
        """Return the terminals with a spelling that begins with `start` and is longer."""
        found = self._by_start.get(start, frozenset())
        return found | self._by_start.get(start.lower(), frozenset()) if self._in_any_case else found

    @property
    def size_bytes(self) -> int:
        """Approximate memory of the spellings, whose first use collects them."""
        return _START_BYTES * len(self.__dict__.get("_by_start", ()))

    @cached_property
    def spellings(self) -> dict[int, bytes]:
        """The spelling of each keyword and operator, by its terminal."""
        named = {symbol: self._tables.literal(symbol) for symbol in range(self._tables.token_count)}
        return {symbol: text for symbol, text in (*named.items(), *self._keywords()) if text}

    @cached_property
    def _by_start(self) -> dict[bytes, frozenset[int]]:
        found: dict[bytes, set[int]] = {}
        for symbol, text in self.spellings.items():
            for length in range(1, len(text)):
                found.setdefault(text[:length], set()).add(symbol)
        return {start: frozenset(symbols) for start, symbols in found.items()}

    def _keywords(self) -> Iterator[tuple[int, bytes]]:
        """Yield every keyword's symbol and spelling, in small letters if they may be of any case."""
        alive = [b""]
        while alive:
            start = alive.pop()
            letters, followed = self._lexer.next_letters(start), set[int]()
            for letter, keyword, goes_on in letters:
                text, small = start + bytes([letter]), (start + bytes([letter])).lower()
                if text != small and _includes(letters, (small[-1], keyword, goes_on)):
                    after = self._lexer.next_letters(small)
                    if all(_includes(after, each) for each in self._lexer.next_letters(text)):
                        self._in_any_case = True
                        continue
                if keyword:
                    yield keyword, text
                if goes_on and len(text) < _MAX_WORD_BYTES and keyword not in followed:
                    alive.append(text)
                    followed |= {keyword} - {0}  # of the digits of `u32`, which are a pattern, only one goes on


def _includes(letters: list[tuple[int, int, bool]], wanted: tuple[int, int, bool]) -> bool:
    """Return whether a letter leads to all that the same one of `Lexer.next_letters` leads to."""
    letter, keyword, goes_on = wanted
    return any(each == letter and (not keyword or keyword == word) and goes_on <= on for each, word, on in letters)


class Spellings:
    """How a search for missing terminals writes them, and what they cost.

    Attributes:
        texts: Spelling of each terminal that has one by itself.
        costs: Cost of inserting each terminal; negative for one that cannot be inserted.
    """

    def __init__(self, tables: Tables, lexer: Lexer, layout: LayoutRule, literals: Literals) -> None:
        self._tables, self._lexer = tables, lexer
        scanned = set(tables.external_symbols)
        self.texts = dict(literals.spellings)
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
