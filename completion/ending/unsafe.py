"""Cuts a suggestion before unsafe code: a shell, a disabled verification, a secret, a query built from strings.

A hostile repository can steer the model with its comments and names. `completion.workspace.unsafe_code` lists the
harmful constructs that the model can then write. A suggestion ends before such a construct, unless the user's own text
permits it:

- The user began to write it: its decisive part starts before the cursor, on the cursor's line. After `verify=`, the
  word `False` is the user's choice. After `curl ADDRESS`, a pipe into a shell is not.
- Code shortly before the cursor has a construct of the same kind, so the program already does the same. Comments and
  sentences in strings do not count, because injections are written in them. A secret is never repeated.
"""

from __future__ import annotations

import re
from functools import lru_cache

from completion.ending.context import Context
from completion.ending.rule import Ends
from completion.workspace.code_only import code_by_marks
from completion.workspace.unsafe_code import Call, begun_construct, calls, constructs, names_unsafe

NEAR_LINES = 60
"""Number of lines before the cursor's line whose code can permit a construct of the same kind: about one screen."""
LINE_CHARACTERS = 500
"""Maximum number of characters before the cursor that are searched; it bounds the time of a search."""

_WORD_REVERSED = re.compile(r"[\w$.-]*[\"'`]?")


def unsafe(text: str, context: Context) -> Ends:
    """End before the first unsafe construct that the user's own text does not permit; what may become one is unsure."""
    cut = _first_unsafe(text, context)
    kept = text if cut is None else text[:cut]
    start = kept.rfind("\n") + 1
    before = "" if start else context.line_before[-LINE_CHARACTERS:]
    line = before + kept[start:]
    last_word = _word_start(line, len(line))
    found = begun_construct(context.language).search(line, 0, last_word)
    sure = start + (_word_start(line, found.start()) if found else last_word) - len(before)
    whole, cursor = _around(kept, context)
    undecided = (
        _word_start(whole, call.start) - cursor
        for call in _calls(whole, context.language, cursor)
        if call.is_open and (call.start >= cursor or context.before.open)
    )
    return Ends(len(kept), max(0, min([sure, *undecided])))


def _first_unsafe(text: str, context: Context) -> int | None:
    """Return the offset of the first construct that is not permitted; 0 if it begins before the cursor."""
    before = context.line_before[-LINE_CHARACTERS:]
    line, cursor = before + text, len(before)
    found: list[tuple[str, int]] = []
    if names_unsafe(line, context.language):
        found = [
            (kind, _word_start(line, match.start()) - cursor)
            for kind, pattern in constructs(context.language)
            for match in pattern.finditer(line)
            if match.end() > cursor and match.start("act" if "act" in pattern.groupindex else 0) >= cursor
        ]
    whole, cursor = _around(text, context)
    found += [
        (call.kind, _word_start(whole, call.start) - cursor)
        for call in _calls(whole, context.language, cursor)
        if call.act is not None and call.act >= cursor
    ]
    permitted = _permitted_kinds(context) if found else ()
    return max(0, min(starts)) if (starts := [start for kind, start in found if kind not in permitted]) else None


@lru_cache(maxsize=2)  # a text that is not cut is searched twice
def _calls(text: str, language: str, start: int) -> tuple[Call, ...]:
    return tuple(calls(text, language, start))


def _around(text: str, context: Context) -> tuple[str, int]:
    """Return a text after what stands before it, where a call may begin, and the cursor's offset there."""
    before = context.near[-LINE_CHARACTERS:]
    return before + text, len(before)


def _word_start(text: str, offset: int) -> int:
    """Return the start of the words joined by dots, including a quote, that contain or end at `offset`."""
    word = _WORD_REVERSED.match(text[max(0, offset - LINE_CHARACTERS) : offset][::-1])
    return offset - (word.end() if word else 0)


def _permitted_kinds(context: Context) -> set[str]:
    """Return the kinds of constructs in the code shortly before the cursor's line."""
    above = context.near[: max(0, len(context.near) - len(context.line_before))]
    near = "\n".join(code_by_marks(above, context.language).split("\n")[-NEAR_LINES - 1 :])
    lines = "\n".join(above.split("\n")[-NEAR_LINES - 1 :])  # with strings, which decide on calls
    kinds = {kind for kind, pattern in constructs(context.language) if kind != "secret" and pattern.search(near)}
    return kinds | {call.kind for call in calls(lines, context.language) if call.act is not None and call.head in near}
