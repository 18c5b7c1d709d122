"""An outline of the text above the prompt's window in a long file: its imports and the heads of open scopes."""

from __future__ import annotations

import hashlib
from collections import OrderedDict

from completion.errors import ParseLimitError
from completion.syntax.parsing import IN_PROCESS, Parsing
from completion.workspace.definitions import import_statements

MAX_CHARACTERS = 800
"""Maximum number of characters in an outline; imports are dropped first, from the top, then the outermost heads."""
MAX_HEAD_CHARACTERS = 200
"""Maximum number of characters in a head after its indentation; a longer line is cut."""

_NO_HEADS = ("#", "//", "/*", "*", ")", "]", "}", "@")


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
    heads = _open_heads(above, _indent(below))
    room = MAX_CHARACTERS - sum(map(len, heads))
    kept: list[str] = []
    for statement in reversed(_import_statements(above, language, parsing)):
        room -= len(statement) + 1
        if room < 0:
            break
        kept.append(statement + "\n")
    return "".join([*reversed(kept), *heads])


def first_line(text: str) -> str:
    """Return the first non-blank line of a text; "" if there is none."""
    return next((line for line in text.splitlines() if line.strip()), "")


def _import_statements(above: str, language: str, parsing: Parsing) -> list[str]:
    try:
        return parsing(import_statements, above, language)
    except ParseLimitError:
        return []


def _open_heads(above: str, indent: int) -> list[str]:
    """Return the heads of the scopes around an indentation, the outermost first."""
    heads: list[str] = []
    room = MAX_CHARACTERS
    for line in reversed(above.splitlines(keepends=True)):
        if indent == 0:
            break
        text = line.strip()
        if text and not text.startswith(_NO_HEADS) and _indent(line) < indent:
            longest = _indent(line) + MAX_HEAD_CHARACTERS
            head = line if len(line) <= longest else line[: longest - 1] + "\n"
            room -= len(head)
            if room < 0:
                break
            heads.append(head)
            indent = _indent(line)
    return heads[::-1]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
