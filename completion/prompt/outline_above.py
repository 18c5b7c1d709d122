"""An outline of the text above the prompt's window in a long file: its imports and the heads of open scopes."""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from contextlib import suppress

from completion.errors import ParseLimitError
from completion.syntax.parsing import IN_PROCESS, Parsing
from completion.workspace.definitions import import_statements

MAX_CHARACTERS = 800
"""Maximum number of characters in an outline; imports are dropped first, from the top, then the outermost heads."""
MAX_HEAD_CHARACTERS = 200
"""Maximum number of characters in a head after its indentation; a longer line is cut."""

_NO_HEADS = ("#", "//", "/*", "*", ")", "]", "}", "@")  # lines that begin so open no scope
_BRACE = re.compile(r"\{\s*(?:$|//|/\*)")
# `case 1:`, `public:`: lines that begin a part of a scope, at its own column.
_LABEL = re.compile(
    r"case\s.*:|(?:default|(?:public|private|protected|signals|Q_SIGNALS)(?:\s+(?:slots|Q_SLOTS))?)\s*:"
)

_CACHE_SIZE = 16
"""Number of outlines in the cache; the window moves in steps, so one outline serves many keystrokes."""


class OutlinesAbove:
    """A cache of outlines by a digest of their text, so that it holds no documents."""

    def __init__(self, parsing: Parsing = IN_PROCESS) -> None:
        self._parsing = parsing
        self._outlines: OrderedDict[tuple[bytes, str, str], str] = OrderedDict()

    def forget(self) -> None:
        """Forget all outlines."""
        self._outlines.clear()

    def above(self, above: str, below: str, language: str) -> str:
        """Return `outline_above(above, below, language)`."""
        key = (hashlib.blake2b(above.encode("utf-8", "replace"), digest_size=16).digest(), below, language)
        outline = self._outlines.pop(key, None)
        if outline is None:
            outline = outline_above(above, below, language, self._parsing)
        self._outlines[key] = outline
        if len(self._outlines) > _CACHE_SIZE:
            self._outlines.popitem(last=False)
        return outline


def outline_above(above: str, below: str, language: str, parsing: Parsing = IN_PROCESS) -> str:
    """Return the import statements of a text and the lines that open its unclosed scopes.

    Args:
        above: All whole lines above the window.
        below: The window's first non-blank line; lines that are indented less open scopes around it.
        language: LSP language identifier; imports are found only for a language with a grammar.
        parsing: Runs the functions that parse.

    Returns:
        Whole lines with their line ends; "" for no lines.
    """
    heads = _open_heads(above, below)
    room = MAX_CHARACTERS - sum(map(len, heads))
    statements, kept = list[str](), list[str]()
    with suppress(ParseLimitError):
        statements = parsing(import_statements, above, language)
    for statement in reversed(statements):
        room -= len(statement) + 1
        if room < 0:
            break
        kept.append(statement + "\n")
    return "".join([*reversed(kept), *heads])


def first_line(text: str) -> str:
    """Return the first non-blank line of a text; "" if there is none."""
    return next((line for line in text.splitlines() if line.strip()), "")


def _open_heads(above: str, below: str) -> list[str]:
    """Return the heads of the scopes around a line, the outermost first; a brace on its own line follows its head."""
    heads: list[str] = []
    room, indent, lower = MAX_CHARACTERS, _indent(below), _second_line(below.strip())
    for line in reversed(above.splitlines(keepends=True)):
        if indent == 0 and not lower:
            break
        text, column = line.strip(), _indent(line)
        if not text or column > indent or (column == indent and not lower):
            continue
        if column == indent and _is_outside(text, lower):
            lower = ""
            continue
        if text.startswith(_NO_HEADS) or (column == indent and _LABEL.match(lower) and _LABEL.match(text)):
            continue
        head = _cut(line, column + MAX_HEAD_CHARACTERS)
        room -= len(head)
        if room < 0:
            break
        heads.append(head)
        indent, lower = column, _second_line(text)
    return heads[::-1]


def _second_line(text: str) -> str:
    """Return the text if it is a brace or a label, whose scope is opened by another line at its column; else ""."""
    return text if _BRACE.match(text) or _LABEL.match(text) else ""


def _is_outside(text: str, lower: str) -> bool:
    """Return whether a line above a brace or a label, at its column, shows that no line there opens their scope."""
    if text.startswith("}"):
        return True
    if _BRACE.match(lower):
        return text.endswith(("{", ";"))
    return not (text.endswith("{") or _LABEL.match(text) or text.startswith(_NO_HEADS))


def _cut(line: str, length: int) -> str:
    return line if len(line) <= length else line[: length - 1] + "\n"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
