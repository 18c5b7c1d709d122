"""In line mode a suggestion ends where its line ends, or with the code that a line of comment announces."""

from __future__ import annotations

from dataclasses import replace

from completion.postprocess.context import Context
from completion.request import Mode, Suggestion

MOST_COMMENTS = 2
"""So many lines of comment may stand before the line of code."""

_HASH = frozenset({"python", "ruby", "shellscript", "perl", "r", "julia", "yaml", "toml"})


def first_line(suggestion: Suggestion, context: Context) -> Suggestion:
    """Cut at the line's end in line mode (see `line_end`); block mode is left as it is."""
    end = line_end(suggestion.text, context) if context.mode is Mode.LINE else None
    return suggestion if end is None else replace(suggestion, text=suggestion.text[:end].removesuffix("\r"))


def line_end(text: str, context: Context) -> int | None:
    """Offset of the line break that ends a line-mode suggestion; None while there is none.

    On an empty line, a comment alone is half a suggestion: the line of code behind it belongs to it. Below another
    comment the user is writing one, and a line is a line.
    """
    mark = "#" if context.language in _HASH else "//"
    announces = not context.line_before.strip() and not _line_above(context).startswith(mark)
    start = 0
    for number, line in enumerate(text.split("\n")[:-1]):
        end = start + len(line)
        if not announces or number == MOST_COMMENTS or not line.lstrip().startswith(mark):
            return end
        start = end + 1
    return None


def _line_above(context: Context) -> str:
    above = context.prefix[: len(context.prefix) - len(context.line_before)].rstrip("\r\n")
    return above[above.rfind("\n") + 1 :].strip()
