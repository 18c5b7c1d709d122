"""Parallel lists: what an added element's neighbours have elsewhere, the element gets there too.

A variant `BLUE` added after `RED` and `GREEN` gets the arm that both of them have. The neighbours are the proof: what
one of them has elsewhere must follow from what another one has beside it, or nothing is proposed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from completion.edits import LineEdit
from completion.next_edit.analogy import WORD, indent_of
from completion.next_edit.candidates import DEPENDENT, GAP, Candidate
from completion.next_edit.list_elements import Element, block_at, elements_beside, gap_beside, part, part_at
from completion.next_edit.rewrites import CLOSERS, is_word, tokenise
from completion.next_edit.spellings import pattern_of, renamed, spellings

_MAX_ADDED = 4  # elements that one edit adds; more of them are a new text
_CHECKED_LINES = 1_000  # lines of a document between two checks of the cancellation
_SEPARATORS = ",;"
_SAME = (1 << 30, 0)


@dataclass(frozen=True, slots=True)
class _Named:
    """An element of the list that got one: its name, then its other words if it is built like the added one."""

    element: Element
    words: tuple[str, ...]

    def mapping(self, other: _Named) -> dict[str, str]:
        """Return what its words are for another element; the name's in every spelling."""
        pairs = zip(self.words[1:], other.words[1:], strict=True) if len(self.words) == len(other.words) else ()
        return {ours: theirs for ours, theirs in pairs if ours != theirs} | spellings(self.words[0], other.words[0])


def parallels(
    lines: Sequence[str], edits: Sequence[LineEdit], first: int, check: Callable[[], None]
) -> Iterator[Candidate]:
    """Yield what the elements that the edits from `first` on added lack elsewhere; what must be written is a `GAP`.

    Args:
        lines: Lines of the document after the edits.
        edits: The edits, the latest last.
        first: Index of the first edit that counts.
        check: Called often; it raises if nobody waits any more.
    """
    for index in range(len(edits) - 1, first - 1, -1):
        edit = edits[index]
        rest = (*lines[: edit.line], *edit.old, *lines[edit.line + len(edit.new) :])
        known = {word for line in rest for word in WORD.findall(line)}
        added = list(_new_elements(lines, edit))
        for element in added if len(added) <= _MAX_ADDED else ():
            named = _with_neighbours(lines, element, known)
            for neighbour in named[1:] if len(named) > 2 else ():
                if found := list(_lacking(lines, named, neighbour, index, check)):
                    yield from found
                    break


def _new_elements(lines: Sequence[str], edit: LineEdit) -> Iterator[Element]:
    """Yield the elements that an edit added: lines that no old line became, and parts within brackets."""
    old, new = ([line.rstrip(_SEPARATORS) for line in side] for side in (edit.old, edit.new))
    for kind, start, end, new_start, new_end in _differences(old, new):
        at, stop = edit.line + new_start, edit.line + new_end
        while kind == "insert" and at < stop:
            element = block_at(lines, at)
            if element is not None and element.line + element.count <= stop:
                yield element
            at += element.count if element is not None else 1
        for number, line in enumerate(edit.old[start:end] if end - start == new_end - new_start else (), at):
            yield from _new_parts(lines, number, line)


def _new_parts(lines: Sequence[str], number: int, old: str) -> Iterator[Element]:
    tokens = tokenise(lines[number])
    for kind, _, _, start, end in _differences([t.text for t in tokenise(old)], [t.text for t in tokens]):
        spans = {part_at(lines[number], token.start) for token in tokens[start:end] if is_word(token.text)}
        yield from (part(lines, number, span) for span in spans if span and kind == "insert")


def _differences(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, int, int, int, int]]:
    return (op for op in SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if op[0] != "equal")


def _with_neighbours(lines: Sequence[str], added: Element, known: set[str]) -> list[_Named]:
    """Return an element and its neighbours that have a name where it has its new one; nothing if it has none."""
    at = next((at for at, word in enumerate(added.words()) if word not in known), None)
    if at is None:
        return []
    shape, seen = added.shape(), 0
    until = next(index for index, each in enumerate(shape) if (seen := seen + (each == "w")) == at + 1) + 1
    found, alike = list[_Named](), list[_Named]()
    for other in (added, *elements_beside(lines, added)):
        if other.shape()[:until] == shape[:until]:
            words, is_alike = other.words(), other.shape() == shape
            found.append(_Named(other, (words[at], *(words[:at] + words[at + 1 :] if is_alike else ()))))
            alike += found[-1:] if is_alike else ()
    return alike if len(alike) > 2 else found


def _lacking(
    lines: Sequence[str], named: Sequence[_Named], neighbour: _Named, index: int, check: Callable[[], None]
) -> Iterator[Candidate]:
    """Yield what the first element of `named` lacks of what one of the others, its neighbours, has elsewhere."""
    added, place = named[0], named[0].element
    theirs, ours = (pattern_of(spellings(each.words[0], "")) for each in (neighbour, added))
    taught_at = place.line, lines[place.line].find(added.words[0], place.start)
    own = range(min(neighbour.element.line, place.line), max(neighbour.element.line, place.line) + 1)
    for number, line in enumerate(lines):
        if number % _CHECKED_LINES == 0:
            check()
        spans = {part_at(line, match.start()) for match in theirs.finditer(line) if number not in own}
        whole = block_at(lines, number) if spans else None
        for element in (*(part(lines, number, span) for span in spans if span), *filter(None, (whole,))):
            beside = elements_beside(lines, element)
            made, votes = _made(element, beside, named, neighbour, theirs)
            if votes and not any(
                ours.search(each.text) for each in (element, *beside)
            ):  # nor is it the added one's list
                old, new = _inserted(lines, element, beside[0], made, is_after=neighbour.element < place)
                column = element.start if element.end else len(indent_of(line))
                kinds = frozenset({DEPENDENT})
                yield Candidate(element.line, old, new, kinds, index, column, taught_at=taught_at, votes=votes)


def _made(
    element: Element, beside: Sequence[Element], named: Sequence[_Named], neighbour: _Named, name: re.Pattern[str]
) -> tuple[str, int]:
    """Return what becomes of a neighbour's element for the added one, and the number of neighbours that prove it.

    They are most of them. Where their elements differ in more than their words after the name, a `GAP` stands.
    """
    text, ends = element.text.rstrip(_SEPARATORS), list[tuple[int, int]]()
    for other in named[1:]:
        mapping = other.mapping(neighbour)
        theirs = {each.text.rstrip(_SEPARATORS) for each in beside if other is not neighbour} - {text}
        expected = {renamed(each, mapping) for each in theirs} - theirs
        ends.append(max((_same_ends(each, text) for each in expected), default=(0, 0)))
    mapping, head, needed = neighbour.mapping(named[0]), name.search(text), len(named) // 2
    votes = sum(each == _SAME for each in ends)
    if votes >= needed:
        return renamed(element.text, mapping), votes
    cuts = [each for each in ends if head is not None and each[0] >= head.end()]
    start, end = min((each[0] for each in cuts), default=0), min((each[1] for each in cuts), default=0)
    if len(cuts) < needed or element.count > 1 or text[start:].strip() in ("", *CLOSERS):
        return "", 0
    tail = re.split(r"\w", text[len(text) - end :])[-1].lstrip() + element.text[len(text) :]
    return renamed(text[:start].rstrip(), mapping) + GAP + tail, len(cuts)


def _same_ends(one: str, other: str) -> tuple[int, int]:
    """Return the lengths of what two texts begin and end with, in whole tokens; `_SAME` if they are the same."""
    if one == other:
        return _SAME
    ends = []
    for first, second in ((one, other), (one[::-1], other[::-1])):
        same = zip(first, second, strict=False)
        count = next((at for at, (a, b) in enumerate(same) if a != b), min(len(one), len(other)))
        while count > 0 and all(side[count - 1 : count + 1].isalnum() for side in (first, second)):
            count -= 1
        ends.append(count)
    return ends[0], min(ends[1], len(other) - ends[0], len(one) - ends[0])


def _inserted(
    lines: Sequence[str], element: Element, other: Element, made: str, *, is_after: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the lines of an element, and these lines with another one after or before it, as far as `other` is."""
    old = tuple(lines[element.line : element.line + element.count])
    pair = (element.text, made) if is_after else (made, element.text)
    if element.end:
        return old, (old[0][: element.start] + gap_beside(old[0], element).join(pair) + old[0][element.end :],)
    separator = other.text[-1:] if other.text[-1:] in _SEPARATORS and element.text[-1:] not in _SEPARATORS else ""
    low, high = sorted((element, other))
    blanks = "\n" * max(0, high.line - low.line - low.count)
    return old, tuple(f"{separator}\n{blanks}".join(pair).split("\n"))
