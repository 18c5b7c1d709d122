"""The joined parse of a request's document, run within the bounds of the parser process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from completion.errors import ParseLimitError
from completion.grammar.joined_check import JoinedCheck, ask
from completion.grammar.suffix_check import line_ends
from completion.syntax.parsing import Parsing

MAX_JOINED_PARSES = 8
"""Maximum number of cuts of one finished completion that are parsed in the document."""
_MAX_GROWING_PARSES = 2  # the same after one token of an unfinished completion; a later one tries again
_GROWTH_BYTES = 16  # growth of a line until the document is parsed again


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
        return self._ask(JoinedCheck.sound, middle, replaced, at_limit=True)

    def blind(self) -> bool:
        """Return whether the cursor is in a part of the document that tree-sitter does not understand."""
        return self._ask(JoinedCheck.blind, at_limit=True)

    def mends(self, middle: bytes, replaced: int = 0) -> bool:
        """Return `JoinedCheck.mends` of the document."""
        return self._ask(JoinedCheck.mends, middle, replaced, at_limit=True)

    def adds_errors(self, middle: bytes, replaced: int = 0) -> bool:
        """Return whether the document has more errors with `middle` than without it."""
        return self._ask(JoinedCheck.adds_errors, middle, replaced, at_limit=False)

    def first_sound(self, offsets: Sequence[int], middle: bytes, replaced: int = 0) -> int:
        """Return the first of `offsets` at which a cut of `middle` adds no errors; 0 if there is none."""
        cuts = (offset for offset in offsets[:MAX_JOINED_PARSES] if not self.adds_errors(middle[:offset], replaced))
        return next(cuts, 0)

    def growing_cut(self, middle: bytes, known: int, is_joined: Callable[[], bool]) -> int:
        """Return the length of `middle` or its last line end after `known` that adds no errors; else `known`.

        To save time, the document is parsed only the first time, at a new line, and after `_GROWTH_BYTES` more bytes.

        Args:
            middle: The unfinished completion.
            known: Number of its bytes that add none.
            is_joined: Returns whether the document is sound with it and what is missing; called after an error.
        """
        if len(middle) < self.tried + _GROWTH_BYTES and b"\n" not in middle[max(0, self.tried) :]:
            return known
        self.tried = len(middle)
        offsets = [offset for offset in line_ends(middle) if offset > known]
        if self.adds_errors(middle) and is_joined():
            return len(middle)
        return self.first_sound(offsets[:_MAX_GROWING_PARSES], middle) or known

    def _ask(self, question: Callable[..., bool], *arguments: bytes | int, at_limit: bool) -> bool:
        if self.is_beyond_limit:
            return at_limit
        try:
            return self.parsing(ask, question, self.language, self.text, self.start, self.end, *arguments)
        except ParseLimitError:
            self.is_beyond_limit = True
            return at_limit
