"""The interface of a grammar's lexer, and the lexemes that it returns.

A grammar's lexer function and external scanner read through the callbacks of a `TSLexer` (source:
`tree_sitter/parser.h`). A lexer also reports whether it looked at the end of the text: such a lexeme can change when
text is appended.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from completion.grammar.lr.tables import LexMode

SERIALIZATION_BYTES = 1024  # TREE_SITTER_SERIALIZATION_BUFFER_SIZE
NO_SYMBOL = -1


class Lexeme(NamedTuple):
    """The lexeme at an offset.

    Attributes:
        symbol: Terminal symbol; `NO_SYMBOL` if nothing matched.
        keyword: Keyword symbol of a word that is also a keyword; 0 otherwise.
        start: Offset of its first byte, after skipped whitespace.
        end: Offset after its last byte.
        touched_end: Whether the lexer looked at the end of the text.
        scanner_state: Serialised state of the external scanner after the lexeme.
        scanner_touched: Whether the external scanner looked at the end of the text; the lexeme is then undecided.
        idle: Whether it is an empty external token that left the scanner's state unchanged.
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
        initial_state: Serialised state of a new scanner. Restoring an empty state instead can keep parts of the
            last scan (the Python scanner's "inside an interpolated string").
    """

    initial_state: bytes

    def load(self, text: bytes, column: int) -> None:
        """Set the text.

        Args:
            text: UTF-8 text that does not end inside a character.
            column: Column of the text's first character in its line, in code points.
        """

    def lex(self, mode: LexMode, offset: int, scanner_state: bytes) -> Lexeme:
        """Return the lexeme at `offset` of the loaded text."""

    def next_letters(self, start: bytes) -> list[tuple[int, int, bool]]:
        """Return the letters that can follow `start` in a keyword.

        Returns:
            For each letter: the letter, the keyword that it completes (0 if none), and whether a longer keyword
            exists.
        """
