"""Brackets, strings and comments of a text, found without a parse, so that broken and partial code works too."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

CLOSER_OF = {"(": ")", "[": "]", "{": "}"}
OPENER_OF = {closer: opener for opener, closer in CLOSER_OF.items()}
CLOSERS = frozenset(OPENER_OF)


@dataclass(frozen=True, slots=True)
class Bracket:
    """One bracket and its offset in the scanned text."""

    character: str
    offset: int


@dataclass(frozen=True, slots=True)
class Scan:
    """What a text leaves open and what it closes without having opened it.

    Attributes:
        open: Openers that the text does not close, innermost last.
        unopened: Closers whose opener lies before the text, in order.
        string: Delimiter of the string that the text ends inside; "" outside strings.
        string_start: Offset where that string begins; 0 where it began before the text.
        comment: Whether the text ends inside a comment.
        string_end: Offset just behind the end of the string that the text began inside; 0 where it began outside.
    """

    open: tuple[Bracket, ...] = ()
    unopened: tuple[Bracket, ...] = ()
    string: str = ""
    string_start: int = 0
    comment: bool = False
    string_end: int = 0


@dataclass(frozen=True, slots=True)
class _Style:
    """How a family of languages writes comments and strings."""

    token: re.Pattern[str]
    line_comment: str
    multi_line_strings: frozenset[str]


def _style(line_comment: str, strings: tuple[str, ...], multi_line: tuple[str, ...] = (), *, c_like: bool) -> _Style:
    literals = [re.escape(comment) for comment in (line_comment, "/*" if c_like else "") if comment]
    # A complete character literal is skipped as a whole: Rust's lifetimes have a lone apostrophe.
    characters = [] if "'" in strings or not c_like else [r"'(?:\\[^\n']{1,9}|[^'\\\n])'"]
    delimiters = [re.escape(delimiter) for delimiter in strings]
    token = re.compile("|".join([*literals, *characters, *delimiters, r"[()\[\]{}]"]))
    return _Style(token, line_comment, frozenset(multi_line))


_PYTHON = _style("#", ('"""', "'''", '"', "'"), ('"""', "'''"), c_like=False)
_SCRIPT = _style("//", ('"', "'", "`"), ("`",), c_like=True)
_C = _style("//", ('"', "'"), c_like=True)
_RUST = _style("//", ('"',), ('"',), c_like=True)
_JSON = _style("", ('"',), c_like=False)
_HASH = _style("#", ('"', "'"), ('"', "'"), c_like=False)
_PLAIN = _style("", (), c_like=False)
_STYLES = {
    "python": _PYTHON,
    **dict.fromkeys(("javascript", "javascriptreact", "typescript", "typescriptreact", "go", "svelte", "vue"), _SCRIPT),
    **dict.fromkeys(("c", "cpp", "csharp", "java", "kotlin", "swift", "scala", "dart", "php", "objective-c"), _C),
    "rust": _RUST,
    "json": _JSON,
    **dict.fromkeys(("ruby", "shellscript", "perl", "r", "julia", "toml", "yaml"), _HASH),
}


def scan(text: str, language: str, string: str = "") -> Scan:
    """Walk over the brackets of `text` that stand outside strings and comments.

    Args:
        text: Any piece of code, complete or not.
        language: LSP language identifier; for an unknown one every bracket counts.
        string: Delimiter of the string that the text begins inside, "" where it begins in code.
    """
    style = _STYLES.get(language, _PLAIN)
    position, string_end = 0, 0
    if string:
        end = _string_end(text, 0, string, multi_line=string in style.multi_line_strings)
        if end is None:
            return Scan(string=string)
        position = string_end = end
    stack: list[Bracket] = []
    waiting = Counter[str]()
    unopened: list[Bracket] = []
    while match := style.token.search(text, position):
        token, position = match.group(), match.end()
        if token in CLOSER_OF:
            stack.append(Bracket(token, match.start()))
            waiting[token] += 1
        elif token in CLOSERS:
            if not _close(stack, waiting, token):
                unopened.append(Bracket(token, match.start()))
        else:
            end = _skip(style, text, position, token)
            if end is None:
                comment = token in _comments(style)
                inside = ("", 0) if comment else (token, match.start())
                return Scan(tuple(stack), tuple(unopened), *inside, comment, string_end)
            position = end
    return Scan(tuple(stack), tuple(unopened), string_end=string_end)


def comments_and_strings(text: str, language: str) -> Iterator[tuple[int, int]] | None:
    """Yield start and end of each comment and string of a text; None for a language whose marks are not known."""
    style = _STYLES.get(language)
    return None if style is None else _comments_and_strings(text, style)


def _comments_and_strings(text: str, style: _Style) -> Iterator[tuple[int, int]]:
    position = 0
    while match := style.token.search(text, position):
        position = match.end()
        if match.group() in CLOSER_OF or match.group() in CLOSERS:
            continue
        end = _skip(style, text, position, match.group())
        position = len(text) if end is None else end
        yield match.start(), position


def begun_delimiter(text: str, language: str, string: str = "") -> int:
    """Length of the text's end that may be the beginning of a string's delimiter, such as two quotes of three.

    Args:
        text: Code that goes on.
        language: LSP language identifier.
        string: Delimiter of the string that the text begins inside.
    """
    found = scan(text, language, string)
    if found.comment:
        return 0
    long = [
        one for one in _STYLES.get(language, _PLAIN).multi_line_strings if len(one) > 1 and found.string in ("", one)
    ]
    shortest = 1 if found.string else 2  # outside strings one quote alone begins a string
    for one in long:
        for count in range(len(one) - 1, shortest - 1, -1):
            # the quotes that ended a string begin no other
            if text.endswith(one[:count]) and scan(text[:-count], language, string).string == found.string:
                return count
    return 0


def _comments(style: _Style) -> tuple[str, str]:
    return style.line_comment, "/*"


def _skip(style: _Style, text: str, start: int, token: str) -> int | None:
    """Offset behind the comment or string that `token`, which ends at `start`, begins; None if the text ends in it."""
    if token in _comments(style):
        return _comment_end(text, start, token)
    multi_line = token in style.multi_line_strings
    if len(token) == 1 or multi_line:
        return _string_end(text, start, token, multi_line=multi_line)
    return start  # a whole character literal


def _close(stack: list[Bracket], waiting: Counter[str], closer: str) -> bool:
    """Take the innermost matching opener off the stack, with what is unclosed inside it.

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


@lru_cache(maxsize=16)
def _string_tail(delimiter: str, *, multi_line: bool) -> re.Pattern[str]:
    inner = r"(?:\\.|[^\\])*?" if multi_line else r"(?:\\.|[^\\\n])*?"
    return re.compile(inner + "(?:" + re.escape(delimiter) + ("" if multi_line else r"|(?=\n)") + ")", re.DOTALL)


def _string_end(text: str, start: int, delimiter: str, *, multi_line: bool) -> int | None:
    """Offset just behind a string's end (a line's end ends a one-line string), None if the text ends inside."""
    match = _string_tail(delimiter, multi_line=multi_line).match(text, start)
    return match.end() if match else None


def _comment_end(text: str, start: int, opener: str) -> int | None:
    """Offset behind a comment's end, None if the text ends inside it."""
    found = text.find("*/" if opener == "/*" else "\n", start)
    if found < 0:
        return None
    return found + (2 if opener == "/*" else 0)


@dataclass(frozen=True, slots=True)
class OpenBracket:
    """An opener before the cursor.

    Attributes:
        character: The opener.
        closed_at: Offset after the cursor of the closer that the document has for it; None if it has none.
    """

    character: str
    closed_at: int | None


def open_at_cursor(before: Scan, after: Scan, before_text: str, after_text: str) -> tuple[OpenBracket, ...]:
    """Openers before the cursor with their closers behind it, innermost last.

    A closer on the cursor's line belongs to the innermost opener that it fits, one that begins a later line to the one
    whose line is indented as far. Where closers are missing, the innermost openers of the cursor's line are those
    without: somebody is typing there.

    Args:
        before: Scan of `before_text`, the text that ends at the cursor.
        after: Scan of `after_text`, the text that begins at the cursor.
        before_text: What was scanned before the cursor.
        after_text: What was scanned after it.
    """
    line_end = (after_text + "\n").index("\n")
    near = [closer for closer in after.unopened if closer.offset < line_end]
    waiting = list(before.open)
    closed = _pair(waiting, near, before_text, after_text)
    later = list(after.unopened[len(near) :])
    _leave_open(waiting, later, before_text.rfind("\n") + 1)
    closed |= _pair(waiting, later, before_text, after_text)
    return tuple(OpenBracket(opener.character, closed.get(opener.offset)) for opener in before.open)


def _pair(waiting: list[Bracket], found: list[Bracket], before_text: str, after_text: str) -> dict[int, int]:
    """Offsets of openers with those of their closers; what is paired or skipped leaves `waiting`."""
    closed: dict[int, int] = {}
    fitting = _by_closer(waiting, before_text) if found else {}
    for closer in found:
        indent = _indent_of_first(after_text, closer.offset)
        chosen = _last_below(len(waiting), fitting.get((closer.character, indent), []))
        if chosen is None:
            chosen = _last_below(len(waiting), fitting.get((closer.character, None), []))
        if chosen is not None:
            closed[waiting[chosen].offset] = closer.offset
            del waiting[chosen:]
    return closed


def _by_closer(waiting: list[Bracket], text: str) -> dict[tuple[str, str | None], list[int]]:
    """Ascending indices of openers by their closer and the indentation of their line, and by the closer alone."""
    fitting: dict[tuple[str, str | None], list[int]] = {}
    indents: dict[int, str] = {}
    for index, opener in enumerate(waiting):
        start = text.rfind("\n", 0, opener.offset) + 1
        if start not in indents:
            indents[start] = _indent(text, start, opener.offset)
        for indent in (indents[start], None):
            fitting.setdefault((CLOSER_OF[opener.character], indent), []).append(index)
    return fitting


def _last_below(bound: int, indices: list[int]) -> int | None:
    """The last of ascending indices that is below a bound; the others are dropped, for the bound only shrinks."""
    while indices and indices[-1] >= bound:
        indices.pop()
    return indices[-1] if indices else None


def _leave_open(waiting: list[Bracket], later: list[Bracket], line_start: int) -> None:
    """Take the innermost openers of the cursor's line off `waiting` for which later lines have too few closers.

    Only round and square brackets: those of a block are told apart by indentation.
    """
    closers = next((i for i, closer in enumerate(later) if closer.character == "}"), len(later))
    openers = next((i for i, opener in enumerate(reversed(waiting)) if opener.character == "{"), len(waiting))
    for _ in range(openers - closers):
        if waiting[-1].offset >= line_start:
            waiting.pop()


def _indent(text: str, start: int, end: int) -> str:
    """Leading blanks of the line from `start` to `end`."""
    line = text[start:end]
    return line[: len(line) - len(line.lstrip())]


def _indent_of_first(text: str, offset: int) -> str | None:
    """Leading blanks of the line if the character at `offset` is its first; None otherwise."""
    start = text.rfind("\n", 0, offset) + 1
    return text[start:offset] if start and not text[start:offset].strip() else None
