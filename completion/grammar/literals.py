"""The texts of terminals that are fixed words: needed to tell whether a lexeme's beginning can still become one."""

from __future__ import annotations

from completion.grammar.lexer import Lexer
from completion.grammar.tables import Tables

_MAX_WORD_BYTES = 40


class LiteralTexts:
    """Keywords and operators by terminal.

    The name of an anonymous terminal is its text. A keyword may be a named rule as well (`mutable_specifier` is "mut"
    in Rust), so the keyword lexer is asked for all words that it knows, letter by letter, when first needed.
    """

    def __init__(self, tables: Tables, lexer: Lexer) -> None:
        self._tables, self._lexer = tables, lexer
        self._texts: dict[int, set[bytes]] | None = None

    def begins(self, symbol: int, start: bytes) -> bool:
        """Whether a longer text of the terminal begins with `start`."""
        literal = self._tables.literal(symbol)
        if len(literal) > len(start) and literal.startswith(start):
            return True
        if self._texts is None:
            self._texts = self._walk()
        return any(len(text) > len(start) and text.startswith(start) for text in self._texts.get(symbol, ()))

    def _walk(self) -> dict[int, set[bytes]]:
        texts: dict[int, set[bytes]] = {}
        alive = [b""]
        while alive:
            start = alive.pop()
            for letter, keyword, goes_on in self._lexer.next_letters(start):
                text = start + bytes([letter])
                if keyword:
                    texts.setdefault(keyword, set()).add(text)
                if goes_on and len(text) < _MAX_WORD_BYTES:
                    alive.append(text)
        return texts
