"""What a window over a long file leaves out above it, in a few lines: the imports, and the heads of open scopes."""

from __future__ import annotations

from functools import lru_cache

from completion.workspace.definitions import import_statements

MOST_CHARACTERS = 800
"""Of an outline; imports are cut first, from the top."""

_NO_HEADS = ("#", "//", "/*", "*", ")", "]", "}", "@")


@lru_cache(maxsize=16)
def outline_above(above: str, below: str, language: str) -> str:
    """The import statements of a text, and the lines that open the scopes which it leaves open.

    Args:
        above: Everything above the window, whole lines.
        below: The window's first line that is not blank: what is indented less opens a scope around it.
        language: LSP language identifier; imports are only found where it has a grammar.

    Returns:
        Whole lines with their line ends; "" where nothing is left out.
    """
    heads = _open_heads(above, _indent(below))
    room = MOST_CHARACTERS - sum(map(len, heads))
    kept: list[str] = []
    for statement in reversed(import_statements(above, language)):
        room -= len(statement) + 1
        if room < 0:
            break
        kept.append(statement + "\n")
    return "".join([*reversed(kept), *heads])


def first_line(text: str) -> str:
    """The first line of a text that is not blank; "" where all are."""
    return next((line for line in text.splitlines() if line.strip()), "")


def _open_heads(above: str, indent: int) -> list[str]:
    """Lines above that are indented less and less, the outermost first, with the signature's lines below each."""
    heads: list[str] = []
    for line in reversed(above.splitlines(keepends=True)):
        if indent == 0:
            break
        text = line.strip()
        if text and not text.startswith(_NO_HEADS) and _indent(line) < indent:
            heads.append(line)
            indent = _indent(line)
    return heads[::-1]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
