"""A grammar's lexer: what it returns, and the interface that the acceptor needs of it.

A grammar's lexer function and external scanner read through the callbacks of a `TSLexer` (source:
`tree_sitter/parser.h`). Besides the lexeme, a lexer says whether it looked at the end of the text: such a lexeme may
become another one when text is appended.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from completion.grammar.lr.tables import LexMode

SERIALIZATION_BYTES = 1024  # TREE_SITTER_SERIALIZATION_BUFFER_SIZE
NO_SYMBOL = -1


class Lexeme(NamedTuple):
    """What the lexer found at an offset.

    Attributes:
        symbol: The terminal, `NO_SYMBOL` if nothing matched.
        keyword: The keyword that the word also is; 0 for none.
        start: Where it begins, after skipped blanks.
        end: Where the next one begins.
        touched_end: The end of the text was looked at.
        scanner_state: The external scanner's state after it.
        scanner_touched: The external scanner looked at it, so the lexeme says nothing yet.
        idle: An empty external token that left the scanner's state as it was.
    """

    symbol: int
    keyword: int
    start: int
    end: int
    touched_end: bool
    scanner_state: bytes
    scanner_touched: bool = False
    idle: bool = False


class Lexer(Protocol):
    """Finds lexemes in a loaded text.

    Attributes:
        initial_state: What a new scanner serialises. Restoring from nothing in its place may leave a part of the last
            scan behind (the Python scanner's "inside an interpolated string").
    """

    initial_state: bytes

    def load(self, text: bytes, column: int) -> None:
        """Set the text, which starts in code point column `column` of its line; must not end inside a character."""

    def lex(self, mode: LexMode, offset: int, scanner_state: bytes) -> Lexeme:
        """The lexeme at `offset` of the loaded text."""

    def next_letters(self, start: bytes) -> list[tuple[int, int, bool]]:
        """Each letter that may follow in a keyword that begins with `start`.

        Returns:
            The letter; the keyword that is then complete (0: none); whether a longer one begins so.
        """
