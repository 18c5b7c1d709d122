"""Ends a suggestion before a Markdown code fence: models have read much code in fences, and write ``` where it ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from completion.postprocess.context import Context
from completion.request import Suggestion
from completion.syntax.brackets import scan
from completion.syntax.literals.styles import is_code

_FENCE = re.compile(r"^[ \t]*```", re.MULTILINE)
_BEGUN = re.compile(r"^[ \t]*`{1,2}\Z", re.MULTILINE)
_WITH_FENCES = frozenset({"julia"})  # command literals


def code_fence(suggestion: Suggestion, context: Context) -> Suggestion:
    """Cut before the first code fence that is in no string or comment."""
    start = fence_start(suggestion.text, context)
    return suggestion if start is None else replace(suggestion, text=suggestion.text[:start])


def fence_start(text: str, context: Context) -> int | None:
    """Return the length of the text before the line of a code fence; None if there is no fence."""
    if "```" not in text or not is_code(context.language) or context.language in _WITH_FENCES:
        return None
    return next((_end_before(text, start) for start in _starts(_FENCE, text, context)), None)


def stable_length(text: str, context: Context) -> int:
    """Return the length of the part of an unfinished text that the filter keeps however the text continues."""
    if not text.endswith("`"):
        return len(text)
    return next((_end_before(text, start) for start in _starts(_BEGUN, text, context)), len(text))


def _starts(pattern: re.Pattern[str], text: str, context: Context) -> Iterator[int]:
    """Yield where the pattern begins a line that is not in a string or a comment."""
    for match in pattern.finditer(text):
        start = match.start()
        inside = scan(context.near + text[:start], context.language)
        if (start or not context.line_before.strip()) and not inside.string and not inside.comment:
            yield start


def _end_before(text: str, start: int) -> int:
    return len(text[:start].rstrip())
