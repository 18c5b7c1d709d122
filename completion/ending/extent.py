"""How far a suggestion goes: to the end of its first complete line or of the block around the cursor.

In line mode, a comment or decorator includes the line of code after it, a block's head its body, an open bracket,
string or comment its end, and a line that ends with a backslash the next one. In both modes, a text ends before a
Markdown code fence: models have read much code in fences.
"""

from __future__ import annotations

import re
from dataclasses import replace

from completion.ending.balance import lacks
from completion.ending.context import Context
from completion.ending.rule import Ends, whole
from completion.request import Mode
from completion.syntax.block_end import block_end_at
from completion.syntax.brackets import LINE_CLOSERS, scan
from completion.syntax.indent_style import depth
from completion.syntax.line_roles import is_clause, is_decorator, opens_body
from completion.syntax.table import is_code, row_of

MAX_COMMENTS = 2
"""Maximum number of comment lines before the line of code."""
MAX_CLOSING_LINES = 4
"""Maximum number of further lines until a line's brackets, strings and comments are closed."""

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
        prefix, near = context.prefix + text[:start], context.near + text[:start]
        context = replace(context, prefix=prefix, near=near, line_before="", line_after="")
    ends = line(text[start:], replace(context, mode=Mode.LINE))
    return start + ends.maybe if ends.over and ends.maybe else 0


def block(text: str, context: Context) -> Ends:
    """End with the block around the cursor in block mode, where the code below can follow."""
    if context.mode is not Mode.BLOCK:
        return whole(text)
    end = context.block_end(text)
    joint, sure = block_end_at(context.near, context.suffix, context.language).joint(text[:end])
    return Ends(joint, sure) if end is None else _over(text, joint)


def _over(text: str, end: int) -> Ends:
    kept = len(text[:end].removesuffix("\r"))
    return Ends(kept, kept, over=True)


def remark(text: str, context: Context) -> Ends:
    """End before a comment at the end of a line of code, where a manual request wants the line below."""
    in_code = not context.before.string and not context.before.comment and context.line_before.strip()
    if not context.invoked or not in_code or context.line_after:
        return whole(text)
    start, openers = text.lstrip(" \t"), row_of(context.language).comments
    if start.startswith(openers):
        return Ends(0, 0, over=True)
    return Ends(len(text), 0 if any(one.startswith(start) for one in openers) else len(text))


def code_fence(text: str, context: Context) -> Ends:
    """End before the first code fence that is in no string, comment or heredoc."""
    if "`" not in text or not is_code(context.language) or row_of(context.language).fences:
        return whole(text)
    for match in _FENCE.finditer(text):
        start = match.start()
        inside = scan(context.near + text[:start], context.language)
        if (start or not context.line_before.strip()) and not (inside.string or inside.comment or inside.in_heredoc):
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
    while opens_body(line, context.language) and not _goes_on_below(line, context):
        after = context.block_end(text, end)
        if after is None:
            return None
        line, line_break, _ = text[after + 1 :].partition("\n")
        if not row_of(context.language).indented or depth(line) != own or not is_clause(line, context.language):
            return after
        if not line_break:
            return None
        end = after + 1 + len(line)
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
    end = first
    for _ in range(MAX_CLOSING_LINES + 1):
        if not _needs_next_line(text[:end], context):
            return end
        end = text.find("\n", end + 1)
        if end < 0:
            return None
    return first


def _needs_next_line(text: str, context: Context) -> bool:
    """Return whether whole lines leave open what they begin: a bracket, a string, a comment, or the next line."""
    line = text.removesuffix("\r")
    if (len(line) - len(line.rstrip("\\"))) % 2:  # two backslashes are one that is escaped
        return not context.scan(line).comment
    found = context.scan(line + "\n")
    if found.string:
        return found.string_end > 0 or not context.before.string  # what the user has begun may stay open
    lacking = lacks(text, context)
    return found.comment or lacking.own + lacking.waiting > lacks("", context).waiting


def code_line(text: str, context: Context) -> tuple[int, int] | None:
    """Return start and end of the first line of code, after the comments and decorators of an empty line before it.

    The result is None while it is undecided.
    """
    mark = row_of(context.language).line_comment or "//"
    announces = not context.line_before.strip()
    comments = MAX_COMMENTS if announces and not context.line_above.lstrip().startswith(mark) else 0
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


def _goes_on_below(line: str, context: Context) -> bool:
    """Return whether the next line below the cursor is indented deeper than `line`."""
    return depth(context.line_below) > depth(line)
