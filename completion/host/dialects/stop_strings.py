"""The stop strings of a client: where a text that grows ends before the first of them."""

from __future__ import annotations

from collections.abc import Sequence


class StopStrings:
    """The search for stop strings in one text that grows; `text_before` reads each character of it once."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [stop for stop in stops if stop]
        self._searches = [_Search(stop) for stop in self._stops]
        self._text = ""

    def text_before(self, text: str, *, done: bool) -> tuple[str, bool]:
        """Return the text before the first stop string, and whether there was one.

        Unless the text is `done`, an ending that may be the beginning of a stop string is cut off as well.
        """
        if done:
            found = [at for at in map(text.find, self._stops) if at >= 0]
            return text[: min(found, default=len(text))], bool(found)
        if not text.startswith(self._text):
            self._searches, self._text = [_Search(stop) for stop in self._stops], ""
        start, self._text = len(self._text), text
        overlap = max((search.go_on(text, start) for search in self._searches), default=0)
        found = [search.found for search in self._searches if search.found >= 0]
        return text[: min(found, default=len(text) - overlap)], bool(found)


class _Search:
    """The search for one string.

    Source: Knuth, Morris, Pratt, "Fast Pattern Matching in Strings" (1977), section 2. The table of borders grows with
    what the text has matched, so a long string costs nothing until it almost stands in the text.
    """

    __slots__ = ("_borders", "_matched", "_stop", "found")

    def __init__(self, stop: str) -> None:
        self._stop = stop
        self._borders = [0]  # [i]: length of the longest border of the string's first i + 1 characters
        self._matched = 0
        self.found = -1  # where the string begins in the text

    def go_on(self, text: str, at: int) -> int:
        """Search the text from a position on, and return how many characters at its end begin the string."""
        while at < len(text) and self.found < 0:
            if not self._matched and (at := text.find(self._stop[0], at)) < 0:
                break
            self._matched = self._longer(self._matched, text[at])
            at += 1
            if self._matched == len(self._stop):
                self.found = at - self._matched
        return self._matched

    def _longer(self, matched: int, character: str) -> int:
        """Return how much of the string a text ends with that ended with `matched` before one more character."""
        while matched and self._stop[matched] != character:
            matched = self._border(matched)
        return matched + (self._stop[matched] == character)

    def _border(self, length: int) -> int:
        """Return the length of the longest proper border of the first characters of the string."""
        while len(self._borders) < length:
            self._borders.append(self._longer(self._borders[-1], self._stop[len(self._borders)]))
        return self._borders[length - 1]
