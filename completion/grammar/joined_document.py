"""The joined parse of a request's document, run within the bounds of the parser process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from completion.errors import ParseLimitError
from completion.grammar.documents import adds_errors, is_blind, is_sound, mends
from completion.syntax.parser_process import Parsing


@dataclass(slots=True)
class JoinedDocument:
    """Runs `JoinedCheck` for one document; after parsing exceeds a bound, every completion passes.

    Attributes:
        parsing: Runs the functions that parse.
        language: LSP identifier of a language with a grammar.
        text: The whole document without the completion.
        start: Offset in bytes where the completion begins.
        end: Offset of the cursor in bytes; the healed run is between `start` and `end`.
        tried: Length of the last unfinished completion that was parsed; far below zero before the first.
        is_beyond_limit: Whether parsing exceeded a bound.
    """

    parsing: Parsing
    language: str
    text: bytes
    start: int
    end: int
    tried: int = -1_000_000
    is_beyond_limit: bool = False

    def sound(self, middle: bytes, replaced: int = 0) -> bool:
        """Return whether the document has no error with `middle` in place of `replaced` bytes after the cursor."""
        return self._ask(is_sound, middle, replaced, at_limit=True)

    def blind(self) -> bool:
        """Return whether the cursor is in a part of the document that tree-sitter does not understand."""
        return self._ask(is_blind, b"", 0, at_limit=True)

    def mends(self, middle: bytes, replaced: int = 0) -> bool:
        """Return whether the document has no error with `middle`, or fewer than without it."""
        return self._ask(mends, middle, replaced, at_limit=True)

    def adds_errors(self, middle: bytes, replaced: int = 0) -> bool:
        """Return whether the document has more errors with `middle` than without it."""
        return self._ask(adds_errors, middle, replaced, at_limit=False)

    def _ask(
        self,
        question: Callable[[str, bytes, int, int, bytes, int], bool],
        middle: bytes,
        replaced: int,
        *,
        at_limit: bool,
    ) -> bool:
        if self.is_beyond_limit:
            return at_limit
        try:
            return self.parsing(question, self.language, self.text, self.start, self.end, middle, replaced)
        except ParseLimitError:
            self.is_beyond_limit = True
            return at_limit
