"""Text stored by line, so that an edit costs only what it touches, with positions in the client's encoding."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from lsp_server.documents.position_encoding import PositionEncoding, column_from_units, units_from_column

_LINE = re.compile(r"[^\r\n]+(?:\r\n?|\n)?|\r\n?|\n")  # does not backtrack: linear in the text
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL_CHARACTERS = frozenset(map(chr, range(32))) - frozenset("\t\n\r\f\v\b\x1b")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A position between two characters of a text.

    Attributes:
        line: Zero-based line.
        column: Zero-based count of code points.
    """

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement in a text: at `start`, `inserted` replaced `removed`."""

    start: Place
    removed: str
    inserted: str


class CharacterCounts(NamedTuple):
    """Numbers of characters that source code does not contain.

    Attributes:
        control: Number of control characters, with NUL, that are neither white space, backspace nor escape.
        surrogate: Number of surrogates without their other half.
    """

    nul: int
    control: int
    surrogate: int

    @classmethod
    def of(cls, text: str) -> CharacterCounts:
        """Count the characters of a text."""
        surrogates = 0 if text.isascii() else len(_SURROGATE.findall(text))
        return cls(text.count("\0"), sum(map(text.count, _CONTROL_CHARACTERS)), surrogates)

    def replaced(self, old: str, new: str) -> CharacterCounts:
        """Return the counts after `new` replaced `old`."""
        changed = zip(self, CharacterCounts.of(old), CharacterCounts.of(new), strict=True)
        return CharacterCounts(*(count - gone + come for count, gone, come in changed))


@dataclass(frozen=True, slots=True)
class _CachedPosition:
    """A position in both units: `column` code points of a line are `units` code units."""

    line: int
    column: int
    units: int
    encoding: PositionEncoding


def split_lines(text: str) -> list[str]:
    r"""Split text after every \n, \r\n and \r, and nowhere else. The last line has no line end and may be empty."""
    lines = _LINE.findall(text)
    if not lines or lines[-1].endswith(("\r", "\n")):
        lines.append("")
    return lines


def join_surrogates(text: str) -> str:
    """Replace each pair of a high and a low surrogate by its character. Keep lone surrogates."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


class TextLines:
    r"""A text as a list of lines. Each but the last includes its line end: \n, \r\n or \r.

    The offset of one line and the code units before one column are cached. So an edit or a lookup costs only its
    distance from the previous one, not the size of the text or of the line.
    """

    __slots__ = ("_cached", "_cached_offset", "_length", "_lines", "counts")

    def __init__(self, text: str) -> None:
        text = join_surrogates(text)
        self._lines = split_lines(text)
        self._length = len(text)
        self.counts = CharacterCounts.of(text)
        self._cached_offset = (0, 0)  # a line and the offset of its start
        self._cached: _CachedPosition | None = None

    def __len__(self) -> int:
        """Number of code points."""
        return self._length

    @property
    def end(self) -> Place:
        """The position after the last character."""
        return Place(len(self._lines) - 1, len(self._lines[-1]))

    def text(self) -> str:
        """Return the whole text."""
        return "".join(self._lines)

    def line(self, number: int) -> str:
        """Return a line without its line end."""
        return self._lines[number][: self.line_length(number)]

    def without_ends(self) -> tuple[str, ...]:
        """Return all lines without their line ends."""
        return tuple(line.rstrip("\r\n") for line in self._lines)

    def line_length(self, number: int) -> int:
        """Return the number of code points of a line without its line end."""
        line = self._lines[number]
        return len(line) - (2 if line.endswith("\r\n") else line.endswith(("\r", "\n")))

    def clamp(self, place: Place) -> Place:
        """Return the nearest position in the text: the end of the text or of the line for one outside."""
        if place.line >= len(self._lines):
            return self.end
        return Place(place.line, min(place.column, self.line_length(place.line)))

    def offset(self, place: Place) -> int:
        """Return the number of code points before a position."""
        line, offset = self._cached_offset
        if place.line >= line:
            offset += sum(map(len, self._lines[line : place.line]))
        else:
            offset -= sum(map(len, self._lines[place.line : line]))
        self._cached_offset = (place.line, offset)
        return offset + place.column

    def place_at(self, line: int, units: int, encoding: PositionEncoding) -> Place:
        """Return the position in the text of an LSP position. One outside the text moves to the nearest inside."""
        if line >= len(self._lines):
            return self.end
        text, cached = self._lines[line], self._cached_in(line, encoding)
        if units >= cached.units:
            start, start_units = cached.column, cached.units
            part = text[start : start + units - start_units]
        else:
            start = max(0, cached.column - (cached.units - units))
            part = text[start : cached.column]
            start_units = cached.units - units_from_column(part, len(part), encoding)
        column = start + column_from_units(part, units - start_units, encoding)
        place = self.clamp(Place(line, column))
        self.units_at(place, encoding)
        return place

    def units_at(self, place: Place, encoding: PositionEncoding) -> int:
        """Return the `character` of a position's LSP position."""
        cached = self._cached_in(place.line, encoding)
        low, high = sorted((cached.column, place.column))
        distance = units_from_column(self._lines[place.line][low:high], high - low, encoding)
        units = cached.units + (distance if place.column >= cached.column else -distance)
        self._cached = _CachedPosition(place.line, place.column, units, encoding)
        return units

    def advance(self, place: Place, count: int) -> Place:
        """Return the position `count` code points after another, at most the end. A line end counts its characters."""
        line, column = place.line, place.column + count
        while line < len(self._lines) - 1 and column >= len(self._lines[line]):
            column -= len(self._lines[line])
            line += 1
        return self.clamp(Place(line, column))

    def last_before(self, place: Place, count: int) -> str:
        """Return the last `count` code points before a position, or all if there are fewer."""
        parts = [self._lines[place.line][max(0, place.column - count) : place.column]]
        line, missing = place.line, count - len(parts[0])
        while line > 0 and missing > 0:
            line -= 1
            parts.append(self._lines[line][-missing:])
            missing -= len(parts[-1])
        return "".join(reversed(parts))

    def first_after(self, place: Place, count: int) -> str:
        """Return the first `count` code points after a position, or all if there are fewer."""
        parts = [self._lines[place.line][place.column : place.column + count]]
        line, missing = place.line + 1, count - len(parts[0])
        while line < len(self._lines) and missing > 0:
            parts.append(self._lines[line][:missing])
            missing -= len(parts[-1])
            line += 1
        return "".join(parts)

    def before(self, place: Place, limit: int) -> str:
        """Return the last lines before a position, at most `limit` code points.

        A line that is longer than the limit loses its start. The length of the omitted text grows in steps of a quarter
        of the limit: if the window moved with every typed line, the engine's cached prefix would never match.
        """
        offset, step = self.offset(place), max(1, limit // 4)
        skipped = -(-max(0, offset - limit) // step) * step
        first, start = place.line, offset - place.column
        while first > 0 and start - len(self._lines[first - 1]) >= skipped:
            first -= 1
            start -= len(self._lines[first])
        return self.last_before(place, offset - max(start, skipped))

    def after(self, place: Place, limit: int) -> str:
        """Return the first lines after a position, at most `limit` code points. A longer line loses its end."""
        text = self.first_after(place, limit)
        if len(text) < limit or len(text) == self._length - self.offset(place):
            return text
        cut = max(text.rfind("\n"), text.rfind("\r"))
        return text[: cut + 1] if cut >= 0 else text

    def between(self, start: Place, end: Place) -> str:
        """Return the text from one position to a later one."""
        if start.line == end.line:
            return self._lines[start.line][start.column : end.column]
        middle = self._lines[start.line + 1 : end.line]
        return "".join((self._lines[start.line][start.column :], *middle, self._lines[end.line][: end.column]))

    def replace(self, start: Place, end: Place, text: str) -> Edit:
        r"""Replace the text between two positions by `text`, and return the edit.

        The characters on both sides are split again with it: \r and \n, or two surrogates, may have become neighbours.
        """
        start, end = sorted((self.clamp(start), self.clamp(end)))
        removed = self.between(start, end)
        first, head, before = self._cut_before(start)
        after, tail = self._cut_after(end)
        old, new = before + removed + after, join_surrogates(before + text + after)
        lines = split_lines(new)
        lines[0] = head + lines[0]
        lines[-1] += tail
        if not lines[-1] and end.line + 1 < len(self._lines):
            lines.pop()  # the next line already begins after this line end
        self._keep_cached_before(start)
        self.offset(Place(first, 0))
        self._lines[first : end.line + 1] = lines
        self._length += len(new) - len(old)
        self.counts = self.counts.replaced(old, new)
        return Edit(start, removed, text)

    def _cut_before(self, place: Place) -> tuple[int, str, str]:
        """Return the line of the character before a position, the line's text before it, and the character."""
        line, column = place.line, place.column
        if column == 0 and line > 0:
            line -= 1
            column = len(self._lines[line])
        cut = max(0, column - 1)
        return line, self._lines[line][:cut], self._lines[line][cut:column]

    def _cut_after(self, place: Place) -> tuple[str, str]:
        """Return the character or whole line end after a position, and the rest of the line."""
        line = self._lines[place.line]
        cut = place.column + 1 if place.column < self.line_length(place.line) else len(line)
        return line[place.column : cut], line[cut:]

    def _cached_in(self, line: int, encoding: PositionEncoding) -> _CachedPosition:
        cached = self._cached
        is_of_line = cached is not None and cached.line == line and cached.encoding is encoding
        return cached if cached is not None and is_of_line else _CachedPosition(line, 0, 0, encoding)

    def _keep_cached_before(self, start: Place) -> None:
        """Move the cached position before `start` or drop it, so that it stays valid after an edit there."""
        if self._cached is not None and self._cached.line == start.line:
            self.units_at(Place(start.line, max(0, start.column - 1)), self._cached.encoding)
        elif self._cached is not None and self._cached.line > start.line:
            self._cached = None
