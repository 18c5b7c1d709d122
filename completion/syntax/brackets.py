"""Finds brackets, strings and comments of a text without parsing, so that broken and partial code works."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from completion.syntax.heredocs import without_quotes_in_heredocs
from completion.syntax.literals.style import LiteralStyle
from completion.syntax.literals.styles import COMPLETE_STYLES, style_of

CLOSER_OF = {"(": ")", "[": "]", "{": "}"}
OPENER_OF = {closer: opener for opener, closer in CLOSER_OF.items()}
CLOSERS = frozenset(OPENER_OF)
LINE_CLOSERS = ")]}\"'`;,: \t"
"""Characters that may follow the cursor at the end of its line: closers that editors insert, and punctuation."""

_LINE_ENDS = re.compile(r"(?:[\s)\]}>\"'`,;:.]|</[\w.:-]*>)*")  # editors insert end tags, too

SCAN_AFTER = 6_000
"""Characters after the cursor that are scanned for closers."""

_LOOKBEHIND = 12  # characters before a text that decide what it begins with; the longest pattern has `return /`
_MAX_REGEX = 200  # characters of a regular expression's literal; it bounds the time for a line of many slashes
_CLASS = r"\[[^\]\\\n]*+(?:\\.[^\]\\\n]*+)*+\]"  # of characters, in a regular expression
_REGEX = re.compile(rf"(?:[^/\\\[\n]++|\\.|{_CLASS})++/")  # a regular expression from its first character to its last


def goes_on(line_after: str) -> bool:
    """Return whether more than closers, end tags and punctuation follow a cursor on its line."""
    return _LINE_ENDS.fullmatch(line_after) is None


@dataclass(frozen=True, slots=True)
class Bracket:
    """One bracket and its offset in the scanned text."""

    character: str
    offset: int


@dataclass(frozen=True, slots=True)
class Scan:
    """The unclosed openers and unopened closers of a text, and the string or comment at its end.

    Attributes:
        open: Openers that the text does not close, innermost last.
        unopened: Closers whose opener is before the text, in order.
        string: Delimiter of the string that the text ends inside; "" outside strings.
        string_start: Offset where that string or comment begins; 0 if the string begins before the text.
        comment: Whether the text ends inside a comment.
        string_end: Offset after the end of the string that the text begins inside; 0 if it begins outside strings.
    """

    open: tuple[Bracket, ...] = ()
    unopened: tuple[Bracket, ...] = ()
    string: str = ""
    string_start: int = 0
    comment: bool = False
    string_end: int = 0


def scan(text: str, language: str, string: str = "", *, before: str = "") -> Scan:
    """Match the brackets of `text` outside strings and comments.

    Args:
        text: Any piece of code, complete or not.
        language: LSP language identifier; for an unknown one every bracket counts.
        string: Delimiter of the string that the text begins inside; "" if it begins in code.
        before: Code before the text. Its end says what the first characters are: in a shell, `$#` begins no comment.
    """
    style = style_of(language)
    around = before[-_LOOKBEHIND:]
    start = position = len(around)
    string_end = 0
    text = without_quotes_in_heredocs(around + text, language)
    if string:
        end = _string_end(style, text, start, string, string)
        if end is None:
            return Scan(string=string)
        position, string_end = end, end - start
    stack: list[Bracket] = []
    waiting = Counter[str]()
    unopened: list[Bracket] = []
    while match := style.token.search(text, position):
        token, position = match.group(), match.end()
        if token in CLOSER_OF:
            stack.append(Bracket(token, match.start() - start))
            waiting[token] += 1
        elif token in CLOSERS:
            if not _close(stack, waiting, token):
                unopened.append(Bracket(token, match.start() - start))
        else:
            end = _skip(style, text, position, token)
            if end is None:
                comment = token in style.comments
                inside = "" if comment else style.strings[token]
                return Scan(tuple(stack), tuple(unopened), inside, match.start() - start, comment, string_end)
            position = end
    return Scan(tuple(stack), tuple(unopened), string_end=string_end)


@dataclass(frozen=True, slots=True)
class Prose:
    """A comment or a string: its offsets in the text."""

    start: int
    end: int
    is_comment: bool


def comments_and_strings(text: str, language: str) -> Iterator[Prose] | None:
    """Return an iterator over the comments and strings; None for a language where not all are known."""
    style = COMPLETE_STYLES.get(language)
    return None if style is None else _comments_and_strings(text, style)


def _comments_and_strings(text: str, style: LiteralStyle) -> Iterator[Prose]:
    position = 0
    while match := style.prose.search(text, position):
        end = _skip(style, text, match.end(), match.group())
        position = len(text) if end is None else end
        yield Prose(match.start(), position, match.group() in style.comments)


def _skip(style: LiteralStyle, text: str, start: int, token: str) -> int | None:
    """Return the end of the comment or string that begins with `token` before `start`; None if it is unfinished."""
    if token in style.comments:
        return _comment_end(text, start, style.comments[token])
    if token == "/":
        regex = _REGEX.match(text, start, start + _MAX_REGEX)
        return regex.end() if regex else start  # without an end on its line, a slash is code
    if token in style.strings:
        return _string_end(style, text, start, token, style.strings[token])
    return start  # a whole literal


def _close(stack: list[Bracket], waiting: Counter[str], closer: str) -> bool:
    """Pop the innermost matching opener from the stack, with unclosed brackets inside it; return whether there is one.

    `waiting` counts the stack's openers by kind, so that a closer without an opener does not search the stack.
    """
    opener = OPENER_OF[closer]
    if not waiting[opener]:
        return False
    innermost = ""
    while innermost != opener:
        innermost = stack.pop().character
        waiting[innermost] -= 1
    return True


@lru_cache(maxsize=32)
def _string_tail(delimiter: str, *, multi_line: bool, raw: bool, escape: str) -> re.Pattern[str]:
    end = re.escape(delimiter)
    other = r"[^\\]" if multi_line else r"[^\\\n]"
    inner = rf"(?:\\.|{other})*?"
    if escape:
        inner = rf"(?:{escape}|(?!{end}).)*+"
    elif raw and len(delimiter) == 1:
        inner = rf"(?:{end}{end}|[^{end}{'' if multi_line else chr(10)}])*+"
    elif raw:
        inner = ".*?" if multi_line else r"[^\n]*?"
    return re.compile(inner + "(?:" + end + ("" if multi_line else r"|(?=\n)") + ")", re.DOTALL)


def _string_end(style: LiteralStyle, text: str, start: int, token: str, delimiter: str) -> int | None:
    """Return the offset after the end of a string that begins with `token` before `start`; None if it is unfinished.

    A line's end ends a one-line string.
    """
    multi_line, raw = token in style.multi_line_strings, token in style.raw_strings
    escape = style.escapes.get(token, "")
    match = _string_tail(delimiter, multi_line=multi_line, raw=raw, escape=escape).match(text, start)
    return match.end() if match else None


def _comment_end(text: str, start: int, closer: str) -> int | None:
    """Return the offset after a comment's end; None if it is unfinished. A line's end is not part of the comment."""
    found = text.find(closer, start)
    if found < 0:
        return None
    return found if closer == "\n" else found + len(closer)
