"""The simplest model of a document that is right: one string, and positions counted from the definition."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

_LINE_END = re.compile(r"\r\n|\r|\n")
_UNIT_BYTES = {"utf-8": 1, "utf-16": 2, "utf-32": 4}
_CODECS = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}


@dataclass(slots=True)
class TextModel:
    """A document as the editor has it."""

    text: str
    encoding: str

    def positions(self) -> list[int]:
        """Offsets that a position can name: all but those inside a line end."""
        inside = {match.start() + 1 for match in re.finditer("\r\n", self.text)}
        return [offset for offset in range(len(self.text) + 1) if offset not in inside]

    def position(self, offset: int) -> dict[str, int]:
        """The LSP position of an offset (LSP 3.17, Position)."""
        starts = [0, *(match.end() for match in _LINE_END.finditer(self.text))]
        line = bisect_right(starts, offset) - 1
        before = self.text[starts[line] : offset]
        units = len(before.encode(_CODECS[self.encoding], "surrogatepass")) // _UNIT_BYTES[self.encoding]
        return {"line": line, "character": units}

    def replace(self, start: int, end: int, text: str) -> dict[str, object]:
        """Replace a range; gives the content change that says so."""
        change = {"range": {"start": self.position(start), "end": self.position(end)}, "text": text}
        self.set(self.text[:start] + text + self.text[end:])
        return change

    def set(self, text: str) -> None:
        """Take a whole new text; two halves of a character that now meet become one."""
        self.text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")

    @property
    def is_unicode(self) -> bool:
        """Whether every character is whole; others get no suggestion."""
        return not any("\ud800" <= character <= "\udfff" for character in self.text)
