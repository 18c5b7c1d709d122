"""A request's document with its completion, as the constraint asks about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from completion.errors import ParseLimitError
from completion.grammar.documents import adds_errors, is_sound
from completion.syntax.parser_process import Parsing


@dataclass(slots=True)
class JoinedDocument:
    """Asks what `JoinedCheck` knows; at a bound of parsing it never rejects, and is not asked again.

    Attributes:
        parsing: Calls what parses.
        language: A language that has a grammar.
        text: The whole document as it was.
        start: Where the completion begins.
        end: Where the cursor is: what lies between is the healed run, which the completion repeats.
        tried: Length of the unfinished completion that was last looked at; far below zero before the first.
        is_beyond_limit: Whether a bound of parsing was met.
    """

    parsing: Parsing
    language: str
    text: bytes
    start: int
    end: int
    tried: int = -1_000_000
    is_beyond_limit: bool = False

    def sound(self, middle: bytes, replaced: int = 0) -> bool:
        """Whether the whole document has no error at all with `middle` in place of `replaced` bytes of the suffix."""
        return self._ask(is_sound, middle, replaced, at_limit=True)

    def adds_errors(self, middle: bytes, replaced: int = 0) -> bool:
        """Whether the document has more errors with `middle` than it had."""
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
