"""Elements of lists: lines of one indentation, and the parts between commas or operators within a line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from completion.next_edit.analogy import WORD, indent_of, shape
from completion.next_edit.rewrites import CLOSERS, OPENERS, tokenise
from completion.syntax.line_roles import announces

MAX_LINES = 12
"""Maximum number of lines of one element."""
_MAX_BESIDE = 4  # neighbours of an element that are looked at, on each side
_MAX_DISTANCE = 48  # lines to the farthest of them
_OPERATOR = re.compile(r" (?:\+|\|\|?|&&?|and|or) ")
_HEAD = re.compile(r"\s*(?:[^=]*[^=!<>]=(?!=)|\w+)\s+")  # of a line: up to the value that it assigns, or its first word
_QUOTES = "\"'`"


@dataclass(frozen=True, slots=True, order=True)
class Element:
    """An element of a list: a line with the deeper ones after it, or a part between separators in one line.

    Attributes:
        start: Column of a part.
        end: Column after a part; 0 for whole lines.
    """

    line: int
    count: int
    start: int
    end: int
    text: str

    def words(self) -> list[str]:
        """Return the words of its first line."""
        return [token.text for token in tokenise(self.text.partition("\n")[0]) if WORD.match(token.text)]

    def shape(self) -> tuple[str, ...]:
        """Return the `shape` of its first line."""
        return shape(self.text.partition("\n")[0])


def elements_beside(lines: Sequence[str], element: Element, language: str) -> list[Element]:
    """Return the neighbours of an element in its list: those before it, then those after it, the nearest ones first.

    Comments and decorators are none.
    """
    line = lines[element.line]
    if element.end:
        spans = _parts(line, element.start)
        own = spans.index((element.start, element.end))
        return [part(lines, element.line, span) for span in (*spans[:own][::-1], *spans[own + 1 :])]
    above = range(element.line - 1, max(-1, element.line - _MAX_DISTANCE), -1)
    below = range(element.line + element.count, min(len(lines), element.line + _MAX_DISTANCE))
    return [other for numbers in (above, below) for other in _along(lines, numbers, indent_of(line), language)]


def _along(lines: Sequence[str], numbers: range, indent: str, language: str) -> list[Element]:
    """Return the elements of an indentation in some lines, up to one that is less deep."""
    found: list[Element] = []
    for number in numbers:
        own = indent_of(lines[number])
        if len(found) == _MAX_BESIDE or (lines[number].strip() and len(own) < len(indent)):
            break
        if own == indent and (element := block_at(lines, number, language)) is not None:
            found.append(element)
    return found


def block_at(lines: Sequence[str], number: int, language: str) -> Element | None:
    """Return the element that a line begins: it, deeper ones after it, what closes them; None if there is none."""
    if lines[number].strip()[:1] in ("", *CLOSERS) or announces(lines[number], language):
        return None
    indent, end = indent_of(lines[number]), number + 1
    for at in range(number + 1, min(len(lines), number + MAX_LINES + 1)):
        if lines[at].strip() and len(indent_of(lines[at])) <= len(indent):
            closes = indent_of(lines[at]) == indent and lines[at].strip()[0] in CLOSERS
            end = at + 1 if closes else end
            break
        end = at + 1 if lines[at].strip() else end
    is_long = end - number > MAX_LINES
    return None if is_long else Element(number, end - number, 0, 0, "\n".join(lines[number:end]))


def part(lines: Sequence[str], number: int, span: tuple[int, int]) -> Element:
    """Return the element of a part of a line."""
    return Element(number, 1, *span, lines[number][slice(*span)])


def part_at(line: str, column: int) -> tuple[int, int] | None:
    """Return the part of the innermost list around a column; None for the only part."""
    parts = _parts(line, column)
    return next((span for span in parts if span[0] <= column < span[1]), None) if len(parts) > 1 else None


def _parts(line: str, column: int) -> tuple[tuple[int, int], ...]:
    """Return the parts of the innermost list around a column, without blanks at their ends.

    In brackets the parts stand between commas or, without commas, between operators; in a whole line between operators.
    """
    head = _HEAD.match(line)
    starts, cuts, quote = [head.end() if head else 0], [list[tuple[int, int]]()], ""
    for at, mark in enumerate(line):
        if mark in _QUOTES and quote in ("", mark) and (quote or mark in line[at + 1 :]):
            quote = "" if quote else mark
        elif not quote and mark in OPENERS:
            starts, cuts = [*starts, at + 1], [*cuts, []]
        elif not quote and (mark == "," or _OPERATOR.match(line, at)):
            found = _OPERATOR.match(line, at)
            cuts[-1].append(found.span() if found else (at, at + 1))
        elif not quote and mark in CLOSERS and len(starts) > 1:
            start, inner = starts.pop(), cuts.pop()
            if start <= column < at:
                return _between(line, start, at, [cut for cut in inner if line[cut[0]] == ","] or inner)
    end = len(line.rstrip(" \t;,:{"))
    operators = [cut for cut in cuts[0] if line[cut[0]] != "," and cut[0] >= starts[0]]
    return _between(line, starts[0], end, operators) if len(starts) == 1 and starts[0] <= column < end else ()


def _between(line: str, start: int, end: int, cuts: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    spans = zip((start, *(high for _, high in cuts)), (*(low for low, _ in cuts), end), strict=True)
    inner = ((low + len(indent_of(line[low:high])), high) for low, high in spans)
    return tuple((low, low + len(line[low:high].rstrip())) for low, high in inner if low < high)


def gap_beside(line: str, element: Element) -> str:
    """Return what stands between a part and the one beside it."""
    spans = _parts(line, element.start)
    at = max(1, spans.index((element.start, element.end)))
    return line[spans[at - 1][1] : spans[at][0]]
