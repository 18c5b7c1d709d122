"""How far a suggestion goes: to the end of its first complete line or of the block around the cursor.

In line mode, a comment or decorator includes the line of code after it, a block's head its body, an open bracket,
string or comment its end, and a line that ends with a backslash the next one. In both modes, a text ends before a word
that ends a block which goes on below, and before a Markdown code fence: models have read much code in fences.
"""

from __future__ import annotations

import re
from dataclasses import replace

from completion.ending.context import Context
from completion.ending.rule import Ends, whole
from completion.request import Mode
from completion.syntax.brackets import LINE_CLOSERS, scan
from completion.syntax.indent_style import depth
from completion.syntax.line_roles import closes_words, is_decorator, may_close_words, opens_lines
from completion.syntax.table import is_code, row_of

MAX_COMMENTS = 2
"""Maximum number of comment lines before the line of code."""
MAX_CLOSING_LINES = 4
"""Maximum number of further lines until a line's brackets, strings and comments are closed."""

_CLAUSE = re.compile(r"[ \t]*(else|elif|except|finally)\b")
_FENCE = re.compile(r"^[ \t]*`(?:``|`?\Z)", re.MULTILINE)  # as far as the text goes


def line(text: str, context: Context) -> Ends:
    """End with the first complete line in line mode, its brackets closed."""
    first = line_end(text, context) if context.mode is Mode.LINE else None
    if first is None:
        return whole(text)
    closed = _closed_end(text, first, context)
    return Ends(len(text), first) if closed is None else _over(text, closed)


def first_line(text: str, context: Context) -> int:
    """Return where the first line of a growing block ends, with its body and what closes it; 0 while it is undecided.

    After an opener, it is the line below.
    """
    if context.mode is not Mode.BLOCK or "\n" not in text.strip():
        return 0
    start = text.rfind("\n", 0, len(text) - len(text.lstrip())) + 1
    if start:
        prefix, blocks = context.prefix + text[:start], context.block_ends.moved(text[:start])
        context = replace(context, prefix=prefix, line_before="", line_after="", block_ends=blocks)
    ends = line(text[start:], replace(context, mode=Mode.LINE))
    return start + ends.maybe if ends.over and ends.maybe else 0


def block(text: str, context: Context) -> Ends:
    """End with the block around the cursor in block mode."""
    end = context.block_ends.after().end(text) if context.mode is Mode.BLOCK else None
    return whole(text) if end is None else _over(text, end)


def _over(text: str, end: int) -> Ends:
    kept = len(text[:end].removesuffix("\r"))
    return Ends(kept, kept, over=True)


def surplus_end(text: str, context: Context) -> Ends:
    """End before a word that ends a block which goes on below: what it ends began before the cursor.

    Such a word begins the first line that is indented less than the next line below the cursor.
    """
    least = depth(context.line_below)
    if not least or context.line_after.strip() or context.before.string or context.before.comment:
        return whole(text)
    offset = 0
    for each in text.split("\n"):
        full = each if offset else context.line_before + each
        if full.strip() and depth(full) < least:
            begins = offset > 0 or not context.line_before.strip()
            is_end = begins and closes_words(full, context.language)
            may_be = begins and may_close_words(full, context.language)
            return Ends(len(text[:offset].rstrip()) if is_end else len(text), offset if may_be else len(text))
        offset += len(each) + 1
    return whole(text)


def code_fence(text: str, context: Context) -> Ends:
    """End before the first code fence that is in no string or comment."""
    if "`" not in text or not is_code(context.language) or row_of(context.language).fences:
        return whole(text)
    for match in _FENCE.finditer(text):
        start = match.start()
        inside = scan(context.near + text[:start], context.language)
        if (start or not context.line_before.strip()) and not inside.string and not inside.comment:
            kept, is_fence = len(text[:start].rstrip()), match.group().endswith("```")
            return Ends(kept if is_fence else len(text), kept, over=is_fence)
    return whole(text)


def line_end(text: str, context: Context) -> int | None:
    """Return the offset where a line-mode suggestion ends, brackets disregarded; None while it is undecided.

    On an empty line, a comment includes the line of code after it, unless the line above is a comment too: then the
    user writes a comment. A decorator always includes that line. The head of a block or an element includes its body
    if the document has none below the cursor, and in Python the clauses that continue the statement.
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
        after = end + body
        clause = _CLAUSE.match(text, after + 1)
        if not row_of(context.language).indented or clause is None or depth(clause.group()) != own:
            return after
        end = text.find("\n", after + 1)
        if end < 0:
            return None
        line = text[after + 1 : end]
    return end


def _closed_end(text: str, first: int, context: Context) -> int | None:
    """Return where a line that ends at `first` has nothing of its own open any more; None while it is undecided.

    If `MAX_CLOSING_LINES` further lines do not close everything, the suggestion ends with its line, and
    `completion.decoding.finishing` decides on it.
    """
    if context.before.comment or context.line_after.strip(LINE_CLOSERS):
        return first
    if _goes_on_below(context.line_before or text, context):
        return first
    closed_below = {bracket.closed_at for bracket in context.open}
    lone = row_of(context.language).lone_closers
    unopened = (closer for closer in context.after.unopened if closer.character not in lone)
    free = sum(closer.offset not in closed_below for closer in unopened)
    end = first
    for _ in range(MAX_CLOSING_LINES + 1):
        if not _needs_next_line(text[:end], free, context):
            return end
        end = text.find("\n", end + 1)
        if end < 0:
            return None
    return first


def _needs_next_line(text: str, free: int, context: Context) -> bool:
    """Return whether whole lines leave open what they begin: a bracket, a string, a comment, or the next line.

    Args:
        text: Lines of the text, without the last line's end.
        free: Number of closers in the document that have no opener.
        context: The document around the cursor.
    """
    line = text.removesuffix("\r")
    if (len(line) - len(line.rstrip("\\"))) % 2:  # two backslashes are one that is escaped
        return not context.scan(line).comment
    found = context.scan(line + "\n")
    if found.string:
        return found.string_end > 0 or not context.before.string  # what the user has begun may stay open
    return found.comment or len(found.open) > free


def code_line(text: str, context: Context) -> tuple[int, int] | None:
    """Return start and end of the first line of code, after the comments and decorators of an empty line before it.

    The result is None while it is undecided.
    """
    mark = row_of(context.language).line_comment or "//"
    announces = not context.line_before.strip()
    comments = MAX_COMMENTS if announces and not _line_above(context).startswith(mark) else 0
    start = 0
    in_empty_docstring = len(context.before.string) == 3 and context.line_before.endswith(context.before.string)
    while (end := text.find("\n", start)) >= 0:
        line = text[start:end]
        if in_empty_docstring and not text[:end].strip():
            pass  # its text begins on the next line
        elif comments and line.lstrip().startswith(mark):
            comments -= 1
        elif announces and is_decorator(line, context.language):
            while scan(text[start:end], context.language).open:
                end = text.find("\n", end + 1)
                if end < 0:
                    return None
        else:
            return start, end
        start = end + 1
    return None


def _lacks_body(line: str, context: Context) -> bool:
    """Return whether a whole line opens a block or an element that has no body below the cursor."""
    head = line.rstrip()
    if row_of(context.language).indented:
        found = scan(head, context.language)
        opens = head.endswith(":") and not (found.open or found.string or found.comment)
    else:
        opens = head.endswith("{") or opens_lines(head, context.language)
    return opens and not _goes_on_below(line, context)


def _goes_on_below(line: str, context: Context) -> bool:
    """Return whether the next line below the cursor is indented deeper than `line`."""
    return depth(context.line_below) > depth(line)


def _line_above(context: Context) -> str:
    above = context.prefix[: len(context.prefix) - len(context.line_before)].rstrip("\n")
    return above[above.rfind("\n") + 1 :].strip()
