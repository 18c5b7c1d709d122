"""A suggestion that goes on to write what already stands below is cut there."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice

from completion.postprocess.context import Context, Dropped, DropReason
from completion.postprocess.suffix_overlap import before_rest
from completion.request import Suggestion
from completion.syntax.brackets import scan
from completion.syntax.indent_style import depth

LOOK_AHEAD = 2
"""So many of the next non-blank lines are compared."""

_BLANKS = re.compile(r"\s+")
_LONG = 20


def following_lines(suggestion: Suggestion, context: Context) -> Suggestion | Dropped:
    """Cut before the first line that repeats one of the next lines of the document.

    Blanks, upper and lower case, kinds of quotes, a comma or semicolon at the end make no difference; other edits do,
    for code is full of lines that differ in one name. Lines without words (closers, say) are left to the filter that
    knows which bracket they belong to.
    """
    text = suggestion.text
    targets = _targets(context)
    offset = 0
    for index, line in enumerate(text.split("\n") if targets else ()):
        whole = context.line_before + line if index == 0 else line
        if fold(whole) in targets and _may_cut(text, offset, context):
            kept = _without_rest(text[: max(offset - 1, 0)].removesuffix("\r"), context)
            return replace(suggestion, text=kept) if kept.strip() else Dropped(DropReason.REPEATS_FOLLOWING)
        offset += len(line) + 1
    return suggestion


def _without_rest(text: str, context: Context) -> str:
    """The text without the rest of the cursor's line, which stands between it and the line that it repeats next."""
    rest = context.line_after.strip()
    return before_rest(text, len(text.rstrip()) - len(rest), context) if rest and text.rstrip().endswith(rest) else text


def stable_length(text: str, context: Context) -> int:
    """Length of the part of an unfinished text that the filter keeps however its last line goes on."""
    start = text.rfind("\n") + 1
    whole = _folded((context.line_before if start == 0 else "") + text[start:])
    if any(target.lstrip().startswith(whole) for target in _targets(context)):
        return max(start - 1, 0)
    return len(text)


def fold(line: str) -> str:
    """The line without what may differ in a repetition; a short line keeps its indentation.

    Lines like `return None` stand one below the other at different depths; a long line hardly ever does.
    """
    folded = _folded(line)
    if len(folded) >= _LONG:
        return folded
    return " " * depth(line) + folded


def _folded(line: str) -> str:
    return _BLANKS.sub("", line).rstrip(",;").replace("'", '"').lower()


def _targets(context: Context) -> list[str]:
    """What the next line folds to, and the one after it where it is too long for chance."""
    lines = [fold(line) for line in islice((line for line in context.following if line.strip()), LOOK_AHEAD)]
    return [
        line
        for index, line in enumerate(lines)
        if any(character.isalnum() for character in line) and (index == 0 or len(line.lstrip()) >= _LONG)
    ]


def _may_cut(text: str, offset: int, context: Context) -> bool:
    """Whether nothing that the text opened before `offset` is still open there."""
    return not scan(text[:offset], context.language, context.before.string).open
