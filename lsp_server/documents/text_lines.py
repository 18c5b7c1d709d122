"""Text held line by line, so that an edit costs what it touches, with positions in the client's encoding."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from enum import StrEnum

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)")
_SURROGATE = re.compile("[\ud800-\udfff]")


class PositionEncoding(StrEnum):
    """What a position's `character` counts (LSP 3.17, PositionEncodingKind)."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A point between two characters.

    Attributes:
        line: Zero-based line.
        column: Zero-based count of code points.
    """

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement that took place: at `start`, the text `removed` made way for `inserted`."""

    start: Place
    removed: str
    inserted: str


def split_lines(text: str) -> list[str]:
    r"""Cut text behind every \n, \r\n and \r, and nowhere else; the last line has no end and may be empty."""
    lines = _LINE.findall(text)
    lines.append(text[sum(map(len, lines)) :])
    return lines


def join_surrogates(text: str) -> str:
    """Make one character of each high and low surrogate that stand side by side; leave lone ones as they are."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def column_from_units(line: str, units: int, encoding: PositionEncoding) -> int:
    """Code points before `units` code units of `line`; a position inside a character moves to its start."""
    if encoding is PositionEncoding.UTF32 or line.isascii():
        return min(units, len(line))
    if encoding is PositionEncoding.UTF16:
        data = line.encode("utf-16-le", "surrogatepass")
        cut = min(units * 2, len(data))
        if 0 < cut < len(data) and _is_high(data[cut - 1]) and _is_low(data[cut + 1]):
            cut -= 2
        return len(data[:cut].decode("utf-16-le", "surrogatepass"))
    data = line.encode("utf-8", "surrogatepass")
    cut = min(units, len(data))
    while 0 < cut < len(data) and data[cut] & 0xC0 == 0x80:
        cut -= 1
    return len(data[:cut].decode("utf-8", "surrogatepass"))


def units_from_column(line: str, column: int, encoding: PositionEncoding) -> int:
    """Code units of the first `column` code points of `line`."""
    before = line[:column]
    if encoding is PositionEncoding.UTF32 or before.isascii():
        return len(before)
    if encoding is PositionEncoding.UTF16:
        return len(before.encode("utf-16-le", "surrogatepass")) // 2
    return len(before.encode("utf-8", "surrogatepass"))


class TextLines:
    r"""A text as its lines, each with the \n, \r\n or \r that ends it; only the last has none."""

    __slots__ = ("_length", "_lines")

    def __init__(self, text: str) -> None:
        self._lines = split_lines(join_surrogates(text))
        self._length = sum(map(len, self._lines))

    def __len__(self) -> int:
        """Number of code points."""
        return self._length

    @property
    def end(self) -> Place:
        """The point behind the last character."""
        return Place(len(self._lines) - 1, len(self._lines[-1]))

    def text(self) -> str:
        """The whole text."""
        return "".join(self._lines)

    def line(self, number: int) -> str:
        """One line without its end."""
        return self._lines[number].rstrip("\r\n")

    def clamp(self, place: Place) -> Place:
        """The nearest place that exists: behind the text its end, behind a line the end of that line."""
        if place.line >= len(self._lines):
            return self.end
        return Place(place.line, min(place.column, len(self.line(place.line))))

    def place_at(self, line: int, units: int, encoding: PositionEncoding) -> Place:
        """The place of an LSP position, moved into the text where it lies outside."""
        if line >= len(self._lines):
            return self.end
        return Place(line, column_from_units(self.line(line), units, encoding))

    def units_at(self, place: Place, encoding: PositionEncoding) -> int:
        """The `character` of a place's LSP position."""
        return units_from_column(self._lines[place.line], place.column, encoding)

    def advance(self, place: Place, count: int) -> Place:
        """The place `count` code points further, at most the end; a line's end counts as its characters."""
        line, column = place.line, place.column + count
        while line < len(self._lines) - 1 and column >= len(self._lines[line]):
            column -= len(self._lines[line])
            line += 1
        return self.clamp(Place(line, column))

    def before(self, place: Place, limit: int | None = None) -> str:
        """Text from the start to `place`.

        With a limit, whole lines are left out at the start to stay about under it. What is left out grows in steps of
        a quarter of the limit: a window that slid with every typed line would move all that an engine has cached.
        """
        lines = self._lines[: place.line]
        current = self._lines[place.line][: place.column]
        excess = sum(map(len, lines)) + len(current) - (limit or self._length)
        first = 0
        if excess > 0 and limit is not None:
            step = max(1, limit // 4)
            skip = -(-excess // step) * step
            while first < len(lines) and skip > 0:
                skip -= len(lines[first])
                first += 1
        return "".join((*lines[first:], current))

    def after(self, place: Place, limit: int | None = None) -> str:
        """Text from `place` to the end; with a limit, whole lines are left out at the end to stay under it."""
        parts = [self._lines[place.line][place.column :]]
        size = len(parts[0])
        for line in itertools.islice(self._lines, place.line + 1, None):
            size += len(line)
            if limit is not None and size > limit:
                break
            parts.append(line)
        return "".join(parts)

    def between(self, start: Place, end: Place) -> str:
        """Text from one place to a later one."""
        if start.line == end.line:
            return self._lines[start.line][start.column : end.column]
        middle = self._lines[start.line + 1 : end.line]
        return "".join((self._lines[start.line][start.column :], *middle, self._lines[end.line][: end.column]))

    def replace(self, start: Place, end: Place, text: str) -> Edit:
        """Put `text` in the place of what lies between two places, and say what that changed."""
        start, end = sorted((self.clamp(start), self.clamp(end)))
        removed = self.between(start, end)
        first = start.line
        chunk = self._lines[first][: start.column] + text + self._lines[end.line][end.column :]
        if first > 0 and chunk.startswith("\n") and self._lines[first - 1].endswith("\r"):
            first -= 1  # the two now form one line end
            chunk = self._lines[first] + chunk
        old_length = sum(map(len, self._lines[first : end.line + 1]))
        lines = split_lines(join_surrogates(chunk))
        if not lines[-1] and end.line + 1 < len(self._lines):
            lines.pop()  # what follows goes on after the last line end
        self._lines[first : end.line + 1] = lines
        self._length += sum(map(len, lines)) - old_length
        return Edit(start, removed, text)


def _is_high(high_byte: int) -> bool:
    return 0xD8 <= high_byte <= 0xDB


def _is_low(high_byte: int) -> bool:
    return 0xDC <= high_byte <= 0xDF
