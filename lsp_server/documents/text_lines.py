"""Text held line by line, so that an edit costs what it touches, with positions in the client's encoding."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lsp_server.documents.position_encoding import PositionEncoding, column_from_units, units_from_column

_LINE = re.compile(r"[^\r\n]+(?:\r\n?|\n)?|\r\n?|\n")  # never backtracks: linear in the text
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL_CHARACTERS = frozenset(map(chr, range(32))) - frozenset("\t\n\r\f\v\b\x1b")


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


@dataclass(frozen=True, slots=True)
class CharacterCounts:
    """Numbers of the characters that source code does not have.

    Attributes:
        nul: NUL characters.
        control: Control characters, NUL included, that are neither white space nor escapes of a terminal.
        surrogate: Surrogates without their other half.
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
        """Return the counts after `new` took the place of `old`."""
        gone, come = CharacterCounts.of(old), CharacterCounts.of(new)
        return CharacterCounts(
            self.nul - gone.nul + come.nul,
            self.control - gone.control + come.control,
            self.surrogate - gone.surrogate + come.surrogate,
        )


@dataclass(frozen=True, slots=True)
class _Known:
    """A position in both ways of counting: `column` code points of a line are `units` code units."""

    line: int
    column: int
    units: int
    encoding: PositionEncoding


def split_lines(text: str) -> list[str]:
    r"""Cut text after every \n, \r\n and \r, and nowhere else; the last line has no end and may be empty."""
    lines = _LINE.findall(text)
    if not lines or lines[-1].endswith(("\r", "\n")):
        lines.append("")
    return lines


def join_surrogates(text: str) -> str:
    """Make one character of each high and low surrogate that stand side by side; leave lone ones as they are."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


class TextLines:
    r"""A text as its lines, each with the \n, \r\n or \r that ends it; only the last has none.

    An edit and a position cost what lies between them and the last one before, not the size of the text or the line:
    the offset of one line and the code units before one column are remembered.

    Attributes:
        counts: Numbers of the characters that source code does not have.
    """

    __slots__ = ("_known", "_known_offset", "_length", "_lines", "counts")

    def __init__(self, text: str) -> None:
        text = join_surrogates(text)
        self._lines = split_lines(text)
        self._length = len(text)
        self.counts = CharacterCounts.of(text)
        self._known_offset = (0, 0)  # a line and the offset of its start
        self._known: _Known | None = None

    def __len__(self) -> int:
        """Number of code points."""
        return self._length

    @property
    def end(self) -> Place:
        """The point after the last character."""
        return Place(len(self._lines) - 1, len(self._lines[-1]))

    def text(self) -> str:
        """The whole text."""
        return "".join(self._lines)

    def line(self, number: int) -> str:
        """One line without its end."""
        return self._lines[number][: self.line_length(number)]

    def line_length(self, number: int) -> int:
        """Code points of a line without its end."""
        line = self._lines[number]
        return len(line) - (2 if line.endswith("\r\n") else line.endswith(("\r", "\n")))

    def clamp(self, place: Place) -> Place:
        """The nearest place that exists: the end of the text, or of the line, where it lies outside."""
        if place.line >= len(self._lines):
            return self.end
        return Place(place.line, min(place.column, self.line_length(place.line)))

    def offset(self, place: Place) -> int:
        """Code points before a place."""
        line, offset = self._known_offset
        if place.line >= line:
            offset += sum(map(len, self._lines[line : place.line]))
        else:
            offset -= sum(map(len, self._lines[place.line : line]))
        self._known_offset = (place.line, offset)
        return offset + place.column

    def place_at(self, line: int, units: int, encoding: PositionEncoding) -> Place:
        """The place of an LSP position, moved into the text where it lies outside."""
        if line >= len(self._lines):
            return self.end
        text, known = self._lines[line], self._known_in(line, encoding)
        if units >= known.units:
            start, start_units = known.column, known.units
            part = text[start : start + units - start_units]
        else:
            start = max(0, known.column - (known.units - units))
            part = text[start : known.column]
            start_units = known.units - units_from_column(part, len(part), encoding)
        column = start + column_from_units(part, units - start_units, encoding)
        place = self.clamp(Place(line, column))
        self.units_at(place, encoding)
        return place

    def units_at(self, place: Place, encoding: PositionEncoding) -> int:
        """The `character` of a place's LSP position."""
        known = self._known_in(place.line, encoding)
        low, high = sorted((known.column, place.column))
        distance = units_from_column(self._lines[place.line][low:high], high - low, encoding)
        units = known.units + (distance if place.column >= known.column else -distance)
        self._known = _Known(place.line, place.column, units, encoding)
        return units

    def advance(self, place: Place, count: int) -> Place:
        """The place `count` code points further, at most the end; a line's end counts as its characters."""
        line, column = place.line, place.column + count
        while line < len(self._lines) - 1 and column >= len(self._lines[line]):
            column -= len(self._lines[line])
            line += 1
        return self.clamp(Place(line, column))

    def last_before(self, place: Place, count: int) -> str:
        """The last `count` code points before a place, or all of them."""
        parts = [self._lines[place.line][max(0, place.column - count) : place.column]]
        line, missing = place.line, count - len(parts[0])
        while line > 0 and missing > 0:
            line -= 1
            parts.append(self._lines[line][-missing:])
            missing -= len(parts[-1])
        return "".join(reversed(parts))

    def first_after(self, place: Place, count: int) -> str:
        """The first `count` code points after a place, or all of them."""
        parts = [self._lines[place.line][place.column : place.column + count]]
        line, missing = place.line + 1, count - len(parts[0])
        while line < len(self._lines) and missing > 0:
            parts.append(self._lines[line][:missing])
            missing -= len(parts[-1])
            line += 1
        return "".join(parts)

    def before(self, place: Place, limit: int) -> str:
        """The text before a place without its first lines, so that it is at most `limit` code points.

        A line that is longer than that loses its start. What is left out grows in steps of a quarter of the limit: a
        window that slid with every typed line would move all that an engine has cached.
        """
        offset, step = self.offset(place), max(1, limit // 4)
        skipped = -(-max(0, offset - limit) // step) * step
        first, start = place.line, offset - place.column
        while first > 0 and start - len(self._lines[first - 1]) >= skipped:
            first -= 1
            start -= len(self._lines[first])
        return self.last_before(place, offset - max(start, skipped))

    def after(self, place: Place, limit: int) -> str:
        """The text after a place without its last lines, at most `limit` code points; a longer line loses its end."""
        text = self.first_after(place, limit)
        if len(text) < limit or len(text) == self._length - self.offset(place):
            return text
        cut = max(text.rfind("\n"), text.rfind("\r"))
        return text[: cut + 1] if cut >= 0 else text

    def between(self, start: Place, end: Place) -> str:
        """Text from one place to a later one."""
        if start.line == end.line:
            return self._lines[start.line][start.column : end.column]
        middle = self._lines[start.line + 1 : end.line]
        return "".join((self._lines[start.line][start.column :], *middle, self._lines[end.line][: end.column]))

    def replace(self, start: Place, end: Place, text: str) -> Edit:
        r"""Put `text` in the place of what lies between two places, and say what that changed.

        Only the characters on both sides of the edit can become one with it: \r with \n, or half a surrogate pair.
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
            lines.pop()  # what follows goes on after the last line end
        self._keep_known_before(start)
        self.offset(Place(first, 0))
        self._lines[first : end.line + 1] = lines
        self._length += len(new) - len(old)
        self.counts = self.counts.replaced(old, new)
        return Edit(start, removed, text)

    def _cut_before(self, place: Place) -> tuple[int, str, str]:
        """The line of the character before a place, what precedes that character there, and the character."""
        line, column = place.line, place.column
        if column == 0 and line > 0:
            line -= 1
            column = len(self._lines[line])
        cut = max(0, column - 1)
        return line, self._lines[line][:cut], self._lines[line][cut:column]

    def _cut_after(self, place: Place) -> tuple[str, str]:
        """The character or whole line end after a place, and what follows it in the line."""
        line = self._lines[place.line]
        cut = place.column + 1 if place.column < self.line_length(place.line) else len(line)
        return line[place.column : cut], line[cut:]

    def _known_in(self, line: int, encoding: PositionEncoding) -> _Known:
        known = self._known
        is_of_line = known is not None and known.line == line and known.encoding is encoding
        return known if known is not None and is_of_line else _Known(line, 0, 0, encoding)

    def _keep_known_before(self, start: Place) -> None:
        """Make what is known of a position hold after an edit that begins at `start`."""
        if self._known is not None and self._known.line == start.line:
            self.units_at(Place(start.line, max(0, start.column - 1)), self._known.encoding)
        elif self._known is not None and self._known.line > start.line:
            self._known = None
