"""Parallel lists: what an added element's neighbours have elsewhere, the element gets there too.

A variant `BLUE` added after `RED` and `GREEN` gets the arm that both of them have. The neighbours are the proof: what
one of them has elsewhere must follow from what another one has beside it, or nothing is proposed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile

from completion.edits import LineEdit
from completion.next_edit.analogy import WORD, indent_of
from completion.next_edit.candidates import DEPENDENT, GAP, Candidate
from completion.next_edit.list_elements import Element, block_at, elements_beside, gap_beside, part, part_at
from completion.next_edit.rewrites import CLOSERS, tokenise
from completion.next_edit.spellings import pattern_of, renamed, spellings

_MAX_ADDED = 4  # elements that one edit adds; more of them are a new text
_MAX_HUNK_LINES = 40  # of an edit that changes lines
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
    lines: Sequence[str], edits: Sequence[LineEdit], first: int, language: str, check: Callable[[], None]
) -> Iterator[Candidate]:
    """Yield what the elements that the edits from `first` on added lack elsewhere; what must be written is a `GAP`.

    Args:
        lines: Lines of the document after the edits.
        edits: The edits, the latest last.
        first: Index of the first edit that counts.
        language: LSP language identifier.
        check: Called often; it raises if nobody waits any more.
    """
    for index in range(len(edits) - 1, first - 1, -1):
        edit = edits[index]
        rest = (*lines[: edit.line], *edit.old, *lines[edit.line + len(edit.new) :])
        known = {word for line in rest for word in WORD.findall(line)}
        lists = [_with_neighbours(lines, each, known, language) for each in _new_elements(lines, edit, language)]
        lists = [named for named in lists if len(named) > 2]  # two neighbours: of one follows what of the other
        for named in lists if len(lists) <= _MAX_ADDED else ():
            for neighbour in named[1:]:
                if found := list(_lacking(lines, named, neighbour, index, language, check)):
                    yield from found
                    break


def _new_elements(lines: Sequence[str], edit: LineEdit, language: str) -> Iterator[Element]:
    """Yield the elements that an edit added: lines all of whose words are new there, and parts within brackets."""
    if edit.old and len(edit.old) + len(edit.new) > _MAX_HUNK_LINES:
        return
    now = [(number, token) for number, line in enumerate(edit.new, edit.line) for token in tokenise(line)]
    matcher = SequenceMatcher(
        None, [t.text for line in edit.old for t in tokenise(line)], [token.text for _, token in now], autojunk=False
    )
    came = {at for kind, _, _, start, end in matcher.get_opcodes() if kind == "insert" for at in range(start, end)}
    words = [(number, token.start, at in came) for at, (number, token) in enumerate(now) if WORD.match(token.text)]
    kept, done = {number for number, _, is_new in words if not is_new}, edit.line
    for number, column, is_new in words:
        element = block_at(lines, number, language)
        if number >= done and number not in kept and element is not None:
            if kept.isdisjoint(range(number, done := number + element.count)):
                yield element
        elif is_new and number in kept and (span := part_at(lines[number], column)):
            yield part(lines, number, span)


def _with_neighbours(lines: Sequence[str], added: Element, known: set[str], language: str) -> list[_Named]:
    """Return an element and its neighbours that have a name where it has its new one; nothing if it has none."""
    at = next((at for at, word in enumerate(added.words()) if word not in known), None)
    if at is None:
        return []
    shape, seen = added.shape(), 0
    until = next(index for index, each in enumerate(shape) if (seen := seen + (each == "w")) == at + 1) + 1
    found, alike = list[_Named](), list[_Named]()
    for other in (added, *elements_beside(lines, added, language)):
        if other.shape()[:until] == shape[:until]:
            words, is_alike = other.words(), other.shape() == shape
            found.append(_Named(other, (words[at], *(words[:at] + words[at + 1 :] if is_alike else ()))))
            alike += found[-1:] if is_alike else ()
    return alike if len(alike) > 2 else found


def _lacking(
    lines: Sequence[str],
    named: Sequence[_Named],
    neighbour: _Named,
    index: int,
    language: str,
    check: Callable[[], None],
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
        whole = block_at(lines, number, language) if spans else None
        for element in (*(part(lines, number, span) for span in spans if span), *filter(None, (whole,))):
            beside = elements_beside(lines, element, language)
            made, votes = _made(element, beside, named, neighbour, theirs)
            has_it = any(ours.search(each.text) for each in (element, *beside))  # or is the list that got it
            if votes and not has_it:
                old, new = _inserted(lines, element, beside[0], made, is_after=neighbour.element < place)
                column = element.start if element.end else len(indent_of(line))
                kinds = frozenset({DEPENDENT})
                yield Candidate(element.line, old, new, kinds, index, column, taught_at=taught_at, votes=votes)


def _made(
    element: Element, beside: Sequence[Element], named: Sequence[_Named], neighbour: _Named, name: re.Pattern[str]
) -> tuple[str, int]:
    """Return what becomes of a neighbour's element for the added one, and the number of neighbours that prove it.

    They are most of those whose name is not in the element itself. Where their elements differ in more than their
    words after the name, a `GAP` stands.
    """
    text, ends = element.text.rstrip(_SEPARATORS), list[tuple[int, int]]()
    own = set(WORD.findall(text)) - {neighbour.words[0]}
    for other in (each for each in named[1:] if each.words[0] not in own):
        mapping = other.mapping(neighbour)
        theirs = {each.text.rstrip(_SEPARATORS) for each in beside if other is not neighbour} - {text}
        expected = {renamed(each, mapping) for each in theirs} - theirs
        ends.append(max((_same_ends(each, text) for each in expected), default=(0, 0)))
    mapping, head, needed = neighbour.mapping(named[0]), name.search(text), (len(ends) + 1) // 2
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
    low = min(element, other)
    between = lines[low.line + low.count : max(element, other).line]
    blanks = "\n" * len(list(takewhile(lambda line: not line.strip(), between)))
    return old, tuple(f"{separator}\n{blanks}".join(pair).split("\n"))
