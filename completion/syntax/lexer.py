"""Reads text of any language: brackets, strings and comments, without parsing, so that broken and partial code works.

It alone says what is in a string, in a comment, or in code within a string. What is open at an offset is a chain of
frames, each of them linked to the one around it: keeping a state costs nothing, and reading goes on from any of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from completion.syntax.lexicon import Lexicon, Literal, lexicon_of

CLOSER_OF = {"(": ")", "[": "]", "{": "}"}
OPENER_OF = {closer: opener for opener, closer in CLOSER_OF.items()}

_INDEX = {closer: index for index, closer in enumerate(OPENER_OF)}
_NONE = (0,) * len(_INDEX)


class Frame(NamedTuple):
    """A bracket, a string or a comment that is open.

    Attributes:
        closer: What closes it.
        offset: Offset of what opens it.
        outer: The frame around it; None for the text itself, which is the outermost one.
        pattern: What begins the next frame in its code.
        literal: Kind of the string or comment; None for brackets.
        string: The outermost string around its content; None outside strings.
        line_string: The outermost one of them that ends with its line.
        counts: Number of open brackets of each kind inside the same string, so that no closer searches in vain.
    """

    closer: str
    offset: int
    outer: Frame | None
    pattern: re.Pattern[str]
    literal: Literal | None = None
    string: Frame | None = None
    line_string: Frame | None = None
    counts: tuple[int, ...] = _NONE

    def inner(self, closer: str, offset: int) -> Frame:
        """Return the frame of a bracket in this one."""
        index = _INDEX[closer]
        counts = (*self.counts[:index], self.counts[index] + 1, *self.counts[index + 1 :])
        return Frame(closer, offset, self, self.pattern, None, self.string, self.line_string, counts)

    def begun(self, literal: Literal, offset: int, lexicon: Lexicon) -> Frame:
        """Return the frame of a string or comment in this one."""
        pattern = lexicon.code if literal.lines and self.pattern is not lexicon.line_code else lexicon.line_code
        return Frame(literal.end, offset, self, pattern, literal).placed(self, offset)

    def placed(self, outer: Frame, offset: int) -> Frame:
        """Return this frame in another one."""
        frame = self._replace(outer=outer, offset=offset, string=outer.string, line_string=outer.line_string)
        if self.literal is None or self.literal.is_comment:
            return frame
        line = frame if outer.line_string is None and not self.literal.lines else outer.line_string
        return frame._replace(string=outer.string or frame, line_string=line)

    def around(self) -> Iterator[Frame]:
        """Yield this frame and those around it, without the text itself."""
        frame = self
        while frame.outer is not None:
            yield frame
            frame = frame.outer


class State(NamedTuple):
    """What is known of a text up to an offset.

    Attributes:
        at: The offset.
        frame: The innermost frame there.
        string_end: Offset after the string that the text begins inside; -1 before, 0 if it begins outside strings.
        unopened: Number of closers without an opener.
        in_heredoc: Whether the lines of a heredoc go on.
        earlier: The state at the begin of an earlier line, from which reading can go on; None at the text's begin.
    """

    at: int
    frame: Frame
    string_end: int = 0
    unopened: int = 0
    in_heredoc: bool = False
    earlier: State | None = None


class Span(NamedTuple):
    """A comment or a string: its offsets in the text."""

    start: int
    end: int
    is_comment: bool


class Reading:
    """Reads a text on from a state, to its end; adds to the offsets of the closers without an opener up to there."""

    def __init__(self, lexicon: Lexicon, text: str, start: State, unopened: list[int]) -> None:
        self._lexicon, self._text = lexicon, text
        self._at, self._frame, self._earlier, self._string_end = start.at, start.frame, start.earlier, start.string_end
        self._awaited, self._awaited_at, self._in_heredoc = "", -1, False
        self.unopened, self.literals = unopened, list[tuple[int, int, bool]]()

    def state(self) -> State:
        """Read the text to its end and return what is known there."""
        while self._in_literal() if self._frame.literal else self._in_code():
            pass
        self._keep(self._text.rfind("\n", self._at) + 1)
        return self._state_at(len(self._text))

    def _keep(self, line: int) -> None:
        """Keep the state at the begin of a line, up to which nothing begins or ends, unless it is in a heredoc."""
        if line and not self._awaited and not self._in_heredoc:
            self._earlier = self._state_at(line)

    def _state_at(self, offset: int) -> State:
        return State(offset, self._frame, self._string_end, len(self.unopened), self._in_heredoc, self._earlier)

    def _in_literal(self) -> bool:
        """Read a string or comment up to its end, or up to code in it; return whether it has one of them."""
        frame = self._frame
        found = frame.literal.inside.match(self._text, self._at)  # type: ignore[union-attr]
        if found is None:
            return False
        self._at = found.end()
        if found.lastgroup:
            self._frame = frame.inner(CLOSER_OF[self._text[self._at - 1]], self._at - 1)
        else:
            self._leave(frame)
        return True

    def _leave(self, frame: Frame) -> None:
        """Go on outside of a string or comment that ends."""
        assert frame.outer is not None  # noqa: S101  it is a literal
        self._frame = frame.outer
        if self._string_end < 0 and frame.outer.string is None:
            self._string_end = self._at
        if frame.outer.outer is None:
            self.literals.append((frame.offset, self._at, frame.literal is not None and frame.literal.is_comment))

    def _in_code(self) -> bool:
        """Read up to a literal that the text does not end, or that has code; return whether there is one."""
        text = self._text
        while (frame := self._frame).literal is None:
            found = frame.pattern.search(text, self._at)
            if self._awaited and (found is None or found.start() > self._awaited_at):
                self._skip_heredoc()
                continue
            start = found.start() if found else len(text)
            self._keep(text.rfind("\n", self._at, start) + 1)
            if found is None:
                return False
            self._at, bracket = found.end(), found.group()
            if found.lastgroup:
                self._begin(found, found.lastgroup)
            elif bracket in CLOSER_OF:
                self._frame = frame.inner(CLOSER_OF[bracket], start)
            elif bracket in OPENER_OF:
                self._close(bracket, start)
            else:
                self.literals.append((start, self._at, False))
        return True

    def _begin(self, found: re.Match[str], name: str) -> None:
        """Begin a comment, a string or a heredoc, and read it if its end is known; or leave what ends with its line."""
        frame, literal = self._frame, self._lexicon.literals.get(name)
        if literal is not None:
            whole = literal.inside.match(self._text, self._at)
            if whole is None or whole.lastgroup:
                self._frame = frame.begun(literal, found.start(), self._lexicon)
            else:
                self._at = whole.end()
                if frame.outer is None:
                    self.literals.append((found.start(), self._at, literal.is_comment))
        elif name == "heredoc":
            self._await_heredoc(found)
        elif frame.line_string is not None:
            self._at = found.start()
            self._leave(frame.line_string)

    def _close(self, closer: str, at: int) -> None:
        """Leave the innermost bracket that a closer closes, with what is open in it."""
        frame: Frame | None = self._frame
        if self._frame.counts[_INDEX[closer]]:
            while frame is not None and frame.closer != closer:
                frame = frame.outer
            self._frame = frame.outer if frame is not None and frame.outer is not None else self._frame
        elif self._frame.string is None:
            self.unopened.append(at)

    def _await_heredoc(self, found: re.Match[str]) -> None:
        start, refused = found.start(), self._lexicon.no_heredoc
        if self._awaited or (refused and refused in self._text[self._text.rfind("\n", 0, start) + 1 : start]):
            self._at = start + 1
        elif (line_end := self._text.find("\n", self._at)) >= 0:
            self._awaited, self._awaited_at = found["end"], line_end

    def _skip_heredoc(self) -> None:
        """Read the lines of a heredoc. One that goes on may be code of another language, with brackets in pairs."""
        start = self._awaited_at + 1
        last = re.compile(rf"^[ \t]*{self._awaited}[;,) \t\r]*$", re.MULTILINE).search(self._text, start)
        self._at, self._awaited = last.end() if last else start, ""
        if last is None:
            self._in_heredoc = True
            self._frame = self._frame._replace(pattern=lexicon_of("").code)
