"""What a window over a long file leaves out above it, in a few lines: the imports, and the heads of open scopes."""

from __future__ import annotations

import hashlib
from collections import OrderedDict

from completion.errors import ParseLimitError
from completion.syntax.parser_process import IN_PROCESS, Parsing
from completion.workspace.definitions import import_statements

MOST_CHARACTERS = 800
"""Length of an outline; imports are cut first, from the top, then the outermost heads."""
LONGEST_HEAD = 200
"""Characters of one head after its indentation; a longer line is cut there."""

_NO_HEADS = ("#", "//", "/*", "*", ")", "]", "}", "@")


_REMEMBERED = 16
"""Number of outlines that are kept: the window moves in steps, so an outline serves many keystrokes."""


class OutlinesAbove:
    """Remembers the last outlines by a digest of their text, so that no document is kept."""

    def __init__(self, parsing: Parsing = IN_PROCESS) -> None:
        self._parsing = parsing
        self._outlines: OrderedDict[tuple[bytes, str, str], str] = OrderedDict()

    def above(self, above: str, below: str, language: str) -> str:
        """Return `outline_above(above, below, language)`."""
        key = (hashlib.blake2b(above.encode("utf-8", "replace"), digest_size=16).digest(), below, language)
        outline = self._outlines.pop(key, None)
        if outline is None:
            outline = outline_above(above, below, language, self._parsing)
        self._outlines[key] = outline
        if len(self._outlines) > _REMEMBERED:
            self._outlines.popitem(last=False)
        return outline


def outline_above(above: str, below: str, language: str, parsing: Parsing = IN_PROCESS) -> str:
    """The import statements of a text, and the lines that open the scopes which it leaves open.

    Args:
        above: Everything above the window, whole lines.
        below: The window's first line that is not blank: what is indented less opens a scope around it.
        language: LSP language identifier; imports are only found where it has a grammar.
        parsing: Calls what parses.

    Returns:
        Whole lines with their line ends; "" where nothing is left out.
    """
    heads = _open_heads(above, _indent(below))
    room = MOST_CHARACTERS - sum(map(len, heads))
    kept: list[str] = []
    for statement in reversed(_import_statements(above, language, parsing)):
        room -= len(statement) + 1
        if room < 0:
            break
        kept.append(statement + "\n")
    return "".join([*reversed(kept), *heads])


def first_line(text: str) -> str:
    """The first line of a text that is not blank; "" where all are."""
    return next((line for line in text.splitlines() if line.strip()), "")


def _import_statements(above: str, language: str, parsing: Parsing) -> list[str]:
    try:
        return parsing(import_statements, above, language)
    except ParseLimitError:
        return []


def _open_heads(above: str, indent: int) -> list[str]:
    """Lines above that are indented less and less, the outermost first, with the signature's lines below each."""
    heads: list[str] = []
    room = MOST_CHARACTERS
    for line in reversed(above.splitlines(keepends=True)):
        if indent == 0:
            break
        text = line.strip()
        if text and not text.startswith(_NO_HEADS) and _indent(line) < indent:
            longest = _indent(line) + LONGEST_HEAD
            head = line if len(line) <= longest else line[: longest - 1] + "\n"
            room -= len(head)
            if room < 0:
                break
            heads.append(head)
            indent = _indent(line)
    return heads[::-1]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
