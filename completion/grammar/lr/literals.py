"""The spellings of keywords and operators, by their beginnings."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from completion.grammar.lr.lexer import Lexer
from completion.grammar.lr.tables import Tables

_MAX_WORD_BYTES = 40  # of a keyword; ends the search in a lexer that takes ever more letters
_START_BYTES = 400  # of a beginning with the set of its terminals


class Literals:
    """Finds the keywords and operators that begin with given bytes.

    The name of an anonymous terminal is its spelling. A keyword can also be a named rule (`mutable_specifier` is "mut"
    in Rust), so the first use enumerates all words of the keyword lexer, letter by letter.
    """

    def __init__(self, tables: Tables, lexer: Lexer) -> None:
        self._tables, self._lexer = tables, lexer

    def beginning_with(self, start: bytes) -> frozenset[int]:
        """Return the terminals with a spelling that begins with `start` and is longer."""
        return self._by_start.get(start, frozenset())

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
        """Yield every keyword's symbol and spelling."""
        alive = [b""]
        while alive:
            start = alive.pop()
            for letter, keyword, goes_on in self._lexer.next_letters(start):
                text = start + bytes([letter])
                if keyword:
                    yield keyword, text
                if goes_on and len(text) < _MAX_WORD_BYTES:
                    alive.append(text)
