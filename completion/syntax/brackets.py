"""What a text leaves open: its brackets, and the string or comment at its end, by the lexer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from itertools import dropwhile, starmap

from completion.edits import common_length
from completion.syntax.lexer import OPENER_OF, Frame, Reading, Span, State
from completion.syntax.lexicon import lexicon_of, string_ended_by

CLOSERS = frozenset(OPENER_OF)
LINE_CLOSERS = ")]}\"'`;,: \t"
"""Characters that may follow the cursor at the end of its line: closers that editors insert, and punctuation."""

SCAN_AFTER = 6_000
"""Characters after the cursor that are scanned for closers."""

_LINE_ENDS = re.compile(r"(?:[\s)\]}>\"'`,;:.]|</[\w.:-]*>)*")  # editors insert end tags, too
_START = 64  # characters that tell texts apart whose scans are kept
_LOOKBEHIND = 12  # characters before a text that decide what it begins with; the longest pattern has `return /`


def goes_on(line_after: str) -> bool:
    """Return whether more than closers, end tags and punctuation follow a cursor on its line."""
    return _LINE_ENDS.fullmatch(line_after) is None


class Literal(StrEnum):
    """What text at a cursor belongs to, other than code. A docstring is a string."""

    COMMENT = "in_comment"
    STRING = "in_string"


@dataclass(frozen=True, slots=True)
class Bracket:
    """One bracket and its offset in the scanned text."""

    character: str
    offset: int


@dataclass(frozen=True, slots=True)
class Scan:
    """The unclosed openers and unopened closers of a text, and the string or comment at its end.

    Attributes:
        open: Openers that the text does not close, innermost last, without those in a string.
        unopened: Closers whose opener is before the text, in order.
        string: Delimiter of the string that the text ends inside, also in code within it; "" outside strings.
        string_start: Offset where that string or comment begins; 0 if the string begins before the text.
        comment: Whether the text ends inside a comment.
        string_end: Offset after the end of the string that the text begins inside; 0 if it begins outside strings.
        in_heredoc: Whether the text ends inside a heredoc.
        frame: The innermost frame at the end; None for a scan of nothing.
    """

    open: tuple[Bracket, ...] = ()
    unopened: tuple[Bracket, ...] = ()
    string: str = ""
    string_start: int = 0
    comment: bool = False
    string_end: int = 0
    in_heredoc: bool = False
    frame: Frame | None = field(default=None, compare=False, repr=False)

    @property
    def waiting(self) -> tuple[str, ...]:
        """What closes the strings and brackets around code in a string, innermost last; () elsewhere."""
        if self.frame is None or self.frame.outer is None or self.frame.outer.string is None:
            return ()
        return tuple(frame.closer for frame in self.frame.around())[::-1]

    @property
    def literal(self) -> Literal | None:
        """What the end of the text is inside; None in code, also in code within a string."""
        if self.comment:
            return Literal.COMMENT
        return Literal.STRING if self.string and not self.waiting else None


class Lexer:
    """Scans texts at one place: a text that begins like the one before is read on from the last line that both have.

    Args:
        language: LSP language identifier; for an unknown one every bracket counts.
        string: What the texts begin inside: the scan of what is before them, or a string's delimiter; "" for code.
        before: Code before the texts. Its end says what the first characters are: in a shell, `$#` begins no comment.
    """

    def __init__(self, language: str, string: str | Scan = "", before: str = "") -> None:
        in_heredoc = isinstance(string, Scan) and string.in_heredoc and not string.string
        self._lexicon = lexicon_of("" if in_heredoc else language)  # the text may be of any language
        self._around = before[-_LOOKBEHIND:]
        start, text = len(self._around), Frame("", -1, None, self._lexicon.code)
        if isinstance(string, Scan):
            frames = string.frame.around() if string.frame and string.frame.string else ()
            frame = _from_string(frames, text, start)
        else:
            frame = text.begun(string_ended_by(string, language), start, self._lexicon) if string else text
        self._start = State(start, frame, string_end=-1 if frame.string else 0)
        self._known = ("", self._start, list[int](), Scan())  # replaced as a whole: threads may share this

    def scan(self, text: str) -> Scan:
        """Match the brackets of a text outside strings and comments."""
        text = self._around + text
        known, state, unopened, found = self._known
        if text != known or state is self._start:
            same, earlier = common_length(known, text), state.earlier
            while earlier is not None and earlier.at > same:
                earlier = earlier.earlier
            begin = earlier or self._start
            reading = Reading(self._lexicon, text, begin, unopened[: begin.unopened])
            state, unopened = reading.state(), reading.unopened
            found = _scan_of(text, state, unopened, len(self._around))
            self._known = (text, state, unopened, found)
        return found


def scan(text: str, language: str, string: str | Scan = "", *, before: str = "") -> Scan:
    """Match the brackets of any piece of code, complete or not, outside strings and comments, as a `Lexer` does."""
    if isinstance(string, Scan) or before:
        return Lexer(language, string, before).scan(text)
    return _lexer_of(language, string, text[:_START]).scan(text)


@lru_cache(maxsize=16)
def _lexer_of(language: str, string: str, _start: str) -> Lexer:
    """Return the lexer of texts with the same start: mostly the same text, which grows at its end."""
    return Lexer(language, string)


def enclosing_literal(before: str, language: str) -> Literal | None:
    """Return what the cursor after `before` is inside; None in code, and where not all literals are known."""
    return scan(before, language).literal if lexicon_of(language).is_complete else None


def _scan_of(text: str, state: State, unopened: list[int], start: int) -> Scan:
    frame, outside = state.frame, state.frame
    if outside.string is not None and outside.string.outer is not None:
        outside = outside.string.outer
    comment = frame.literal is not None and frame.literal.is_comment and frame.string is None
    brackets = [Bracket(OPENER_OF[each.closer], each.offset - start) for each in outside.around() if not each.literal]
    literal = frame.string or (frame if comment else None)
    return Scan(
        open=tuple(reversed(brackets)),
        unopened=tuple(Bracket(text[at], at - start) for at in unopened),
        string=frame.string.closer if frame.string else "",
        string_start=literal.offset - start if literal else 0,
        comment=comment,
        string_end=max(0, state.string_end - start),
        in_heredoc=state.in_heredoc,
        frame=frame,
    )


def _from_string(frames: Iterable[Frame], text: Frame, start: int) -> Frame:
    """Return the frames from the outermost string on inwards, of a text that begins at `start` in the innermost one."""
    found = text
    for each in dropwhile(lambda frame: frame.string is None, reversed([*frames])):
        found = each.placed(found, start)
    return found


def comments_and_strings(text: str, language: str) -> list[Span] | None:
    """Return the comments and strings of a text; None for a language where not all are known."""
    lexicon = lexicon_of(language)
    if not lexicon.is_complete:
        return None
    reading = Reading(lexicon, text, State(0, Frame("", -1, None, lexicon.prose)), [])
    last = [*reading.state().frame.around()]
    rest = [Span(last[-1].offset, len(text), last[-1].string is None)] if last else []
    return [*starmap(Span, reading.literals), *rest]
