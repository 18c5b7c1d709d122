"""Cuts a suggestion where it begins to repeat the lines below the cursor."""

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
"""Number of non-blank lines below the cursor that the text is compared with."""

_BLANKS = re.compile(r"\s+")
_LONG = 20


def following_lines(suggestion: Suggestion, context: Context) -> Suggestion | Dropped:
    """Cut before the first line that repeats one of the next lines of the document.

    The comparison ignores blanks, case, the kind of quotes, and a comma or semicolon at the end. All other differences
    count, because lines of code often differ in one name only. Lines without words are left to the `closers` filter.
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
    """Return the text without a repetition of the rest of the cursor's line at its end."""
    rest = context.line_after.strip()
    return before_rest(text, len(text.rstrip()) - len(rest), context) if rest and text.rstrip().endswith(rest) else text


def stable_length(text: str, context: Context) -> int:
    """Return the length of the part of an unfinished text that the filter keeps however the text continues."""
    start = text.rfind("\n") + 1
    whole = _folded((context.line_before if start == 0 else "") + text[start:])
    if any(target.lstrip().startswith(whole) for target in _targets(context)):
        return max(start - 1, 0)
    return len(text)


def fold(line: str) -> str:
    """Return the line in the form that repetitions share; a short line keeps its indentation.

    Short lines such as `return None` often follow each other at different depths; long lines hardly ever do.
    """
    folded = _folded(line)
    if len(folded) >= _LONG:
        return folded
    return " " * depth(line) + folded


def _folded(line: str) -> str:
    return _BLANKS.sub("", line).rstrip(",;").replace("'", '"').lower()


def _targets(context: Context) -> list[str]:
    """Return the folded next line, and the folded line after it if it is too long to match by chance."""
    lines = [fold(line) for line in islice((line for line in context.following if line.strip()), LOOK_AHEAD)]
    return [
        line
        for index, line in enumerate(lines)
        if any(character.isalnum() for character in line) and (index == 0 or len(line.lstrip()) >= _LONG)
    ]


def _may_cut(text: str, offset: int, context: Context) -> bool:
    """Return whether every bracket that the text opens before `offset` is closed there."""
    return not scan(text[:offset], context.language, context.before.string).open
