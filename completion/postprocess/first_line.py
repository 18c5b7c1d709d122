"""In line mode a suggestion ends where its line ends, or with what that line cannot stand without.

A comment announces a line of code, a block's head opens a body, a bracket waits for its closer: any of them alone is
half a suggestion.
"""

from __future__ import annotations

import re
from dataclasses import replace

from completion.postprocess.context import Context
from completion.request import Mode, Suggestion
from completion.syntax.brackets import scan
from completion.syntax.indent_style import depth

MOST_COMMENTS = 2
"""So many lines of comment may stand before the line of code."""
MOST_CLOSING_LINES = 4
"""A line's brackets may be closed so many lines further down."""

_HASH = frozenset({"python", "ruby", "shellscript", "perl", "r", "julia", "yaml", "toml"})
_CLAUSE = re.compile(r"[ \t]*(else|elif|except|finally)\b")


def first_line(suggestion: Suggestion, context: Context) -> Suggestion:
    """Cut at the line's end in line mode (see `line_end`, `closed_end`); block mode is left as it is."""
    end = closed_end(suggestion.text, context) if context.mode is Mode.LINE else None
    return suggestion if end is None else replace(suggestion, text=suggestion.text[:end].removesuffix("\r"))


def stable_length(text: str, context: Context) -> int:
    """Length of the part of an unfinished text that the filter keeps however it goes on."""
    end = line_end(text, context) if context.mode is Mode.LINE else None
    return len(text) if end is None or closed_end(text, context) is not None else end


def line_end(text: str, context: Context) -> int | None:
    """Offset where a line-mode suggestion ends; None as long as that is open.

    On an empty line, a comment alone is half a suggestion: the line of code behind it belongs to it. Below another
    comment the user is writing one, and a line is a line. A block's head without a body leaves the document broken:
    if none stands below, the body that follows belongs to it, and Python's clauses that go on with the statement.
    """
    code = code_line(text, context)
    if code is None or context.line_before.strip() or context.line_after.strip():
        return code and code[1]
    start, end = code
    line = text[start:end] if start else context.line_before + text[:end]
    own = depth(line)
    while _lacks_body(line, context):
        body = context.block_ends.after(text[:end]).end(text[end:])
        if body is None:
            return None
        behind = end + body
        clause = _CLAUSE.match(text, behind + 1)
        if context.language != "python" or clause is None or depth(clause.group()) != own:
            return behind
        end = text.find("\n", behind + 1)
        if end < 0:
            return None
        line = text[behind + 1 : end]
    return end


def closed_end(text: str, context: Context) -> int | None:
    """Where a line-mode suggestion ends that leaves no bracket open; None as long as that is open.

    Alone, a line whose brackets the document does not close would be a syntax error. If they are not closed soon, it
    is not worth so long a suggestion, and ends after all (then `completion.stopping.opening_line` has the say).
    """
    first = line_end(text, context)
    if first is None or context.line_after.strip() or _goes_on_below(context.line_before or text, context):
        return first
    closed_below = {bracket.closed_at for bracket in context.open}
    free = sum(closer.offset not in closed_below for closer in context.after.unopened)
    end = first
    for _ in range(MOST_CLOSING_LINES + 1):
        found = scan(text[:end], context.language, context.before.string)
        if len(found.open) <= free or found.string or found.comment:
            return end
        end = text.find("\n", end + 1)
        if end < 0:
            return None
    return first


def code_line(text: str, context: Context) -> tuple[int, int] | None:
    """Where the first line of code begins and ends, behind comments that announce it; None as long as that is open."""
    mark = "#" if context.language in _HASH else "//"
    announces = not context.line_before.strip() and not _line_above(context).startswith(mark)
    start = 0
    for number, line in enumerate(text.split("\n")[:-1]):
        end = start + len(line)
        if not announces or number == MOST_COMMENTS or not line.lstrip().startswith(mark):
            return start, end
        start = end + 1
    return None


def _lacks_body(line: str, context: Context) -> bool:
    """Whether a whole line opens a block of which nothing stands below the cursor."""
    head = line.rstrip()
    if context.language == "python":
        found = scan(head, "python")
        opens = head.endswith(":") and not (found.open or found.string or found.comment)
    else:
        opens = head.endswith("{")
    return opens and not _goes_on_below(line, context)


def _goes_on_below(line: str, context: Context) -> bool:
    """Whether the next line below the cursor is indented deeper than `line`: it belongs to what that opens."""
    below = next((line for line in context.following if line.strip()), "")
    return depth(below) > depth(line)


def _line_above(context: Context) -> str:
    above = context.prefix[: len(context.prefix) - len(context.line_before)].rstrip("\n")
    return above[above.rfind("\n") + 1 :].strip()
