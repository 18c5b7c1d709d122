"""Gives the text of a suggestion the document's shape: its indentation, and no blanks or commas too many at its edges.

Tabs or spaces, their width and the first line's depth are the document's. A suggestion that indents a line again from
which the user has removed a level is dropped.
"""

from __future__ import annotations

import re

from completion.ending.context import Context
from completion.ending.rule import DropReason
from completion.syntax.brackets import CLOSERS, scan
from completion.syntax.indent_style import BLOCK_OPENERS, WRAP_OPENERS, depth, leading_blanks
from completion.syntax.lexicon import lexicon_of
from completion.syntax.line_roles import is_item
from completion.syntax.table import row_of

_OPENERS = (*BLOCK_OPENERS, *WRAP_OPENERS, "do", "then")

_BLANKS = (" ", "\t")


def indentation(text: str, context: Context) -> str | DropReason:
    """Rewrite the leading blanks of lines in the document's style; nothing else changes.

    On a line of whole levels, less than the line above has, the user has gone back to a level: no text goes deeper.

    The rewriting only removes blanks or inserts blanks of the kind that the document uses, in a document without
    indented lines those of the text. Lines of blanks become empty, except the last one, which text may follow. Lines of
    a string or heredoc stay as they are.
    """
    is_code = not context.before.string and not context.before.in_heredoc
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    generated = leading_blanks(context.line_before + lines[0])
    if is_code and not context.line_before.strip():
        lines[0] = _first(lines[0], context)
        if lines[0][:1] in _BLANKS and lines[0].strip() and _is_back(context):
            return DropReason.INDENTED_AGAIN
    if is_code and len(lines) > 1 and not row_of(context.language).as_written:
        lines[1:] = _deeper(lines, depth(generated), context)
        if not lines[0].strip():
            lines[0] = ""
    elif recipe := row_of(context.language).recipe:
        lines = _with_tabs(lines, recipe, context)
    return "\n".join(lines)


def edges(text: str, replaces: int, context: Context) -> str | DropReason:
    """Remove leading blanks that repeat a blank before the cursor, and trailing blanks and line breaks.

    With text after the cursor on its line, trailing indentation stays; trailing blanks go only if that text begins with
    a blank. Before a line that begins with a closing bracket, a comma at the end goes where it would be an error. A
    text of which nothing is left, or that repeats exactly what it replaces, is dropped.
    """
    if context.line_before[-1:] in _BLANKS and context.line_before.strip() and not context.before.string:
        text = text.lstrip(" \t")
    after = context.line_after[replaces:]
    if not after.strip():
        text = text.rstrip()
        below = context.line_below.lstrip()
        if text.endswith(",") and not row_of(context.language).last_comma and below[:1] in CLOSERS:
            text = text if context.scan(text).string else text.removesuffix(",")
            if not text:
                return DropReason.LAST_COMMA
    elif after[0] in _BLANKS and not text.rstrip(" \t").endswith("\n"):
        text = text.rstrip(" \t")
    if not text.strip():
        return DropReason.BLANK if text else DropReason.EMPTY
    return DropReason.DOUBLED_CLOSER if text == context.line_after[:replaces] else text


def _with_tabs(lines: list[str], recipe: re.Pattern[str], context: Context) -> list[str]:
    """Return lines below a rule, which begin with a tab: with blanks, they are an error."""
    above, written = context.line_above, list[str]()
    for line in (context.line_before + lines[0], *lines[1:]):
        is_recipe = line.startswith(" ") and line.strip() and recipe.fullmatch(above)
        above = "\t" + line.lstrip() if is_recipe and (written or not context.line_before) else line
        written.append(above)
    return [written[0].removeprefix(context.line_before), *written[1:]]


def _first(line: str, context: Context) -> str:
    """Remove leading blanks of the first line that exceed the deepest indentation possible there."""
    extra = leading_blanks(line)
    if not extra or (context.open and context.open[-1].character != "{"):
        return line
    above = context.line_above
    ends = above.rstrip().endswith((";", "}")) or row_of(context.language).indented
    deeper = above.rstrip().endswith(_OPENERS) or is_item(above) or not ends  # an item's keys are deeper
    deepest = depth(above) + (depth(context.indent.unit) or 4 if deeper else 0)
    allowed = max(0, deepest - depth(context.line_before))
    while extra and depth(extra) > allowed:
        extra = extra[:-1]
    return extra + line.lstrip()


def _is_back(context: Context) -> bool:
    """Return whether the cursor's line of blanks is at a level of the document, less deep than the line above it.

    Below the head of a block, the user has not indented the body yet.
    """
    if context.line_above.rstrip().endswith(_OPENERS):
        return False
    own, above, unit = depth(context.line_before), depth(context.line_above), depth(context.indent.unit)
    return 0 < own < above and unit > 0 and not own % unit and not (context.open and context.open[-1].character != "{")


def _deeper(lines: list[str], generated: int, context: Context) -> list[str]:
    """Return all lines but the first, each level that the text opens indented by one unit of the document.

    The first line is rewritten already; `generated` are the columns that it was indented by before.
    """
    own = leading_blanks(context.line_before + lines[0])
    levels = [(generated, own)]  # (columns in the text, blanks in the document), outermost first
    written, above = [], context.line_before + lines[0]
    marks = (*lexicon_of(context.language).strings, "<<")
    has_literals = any(mark in line for line in lines for mark in marks)
    for index, line in enumerate(lines[1:], 1):
        blanks = leading_blanks(line)
        inside = has_literals and _ends_in_literal("\n".join(lines[:index]), context)
        if inside or not line.strip():
            written.append(line if inside or index == len(lines) - 1 else "")
            continue
        written.append(_indent(depth(blanks), blanks, above, levels, context) + line[len(blanks) :])
        above = line
    return written


def _ends_in_literal(text: str, context: Context) -> bool:
    """Return whether whole lines at the cursor end inside a string or heredoc."""
    found = context.scan(text)
    begun = "<<" in context.line_before and scan(context.line_before + text, context.language).in_heredoc
    return bool(found.string) or found.in_heredoc or begun


def _indent(width: int, blanks: str, above: str, levels: list[tuple[int, str]], context: Context) -> str:
    """Return the blanks for a line that the text indents by `width` columns; update `levels`."""
    while len(levels) > 1 and levels[-1][0] > width:
        levels.pop()
    known, written = levels[-1]
    if width == known:
        return written
    unit = context.indent.unit
    if width < known:
        written = "\t" * (width // 4) + " " * (width % 4) if unit == "\t" else " " * width
        levels[:] = [(width, written)]
        return written
    wraps = width - known in context.indent.wraps and above.rstrip().endswith(WRAP_OPENERS)
    if above.rstrip().endswith(_OPENERS) and unit and not wraps and not is_item(above):  # an item's keys are deeper
        written += unit
    elif unit == "\t" or ("\t" in blanks and not unit):  # in a document without indented lines the text's tabs stay
        written += "\t" * ((width - known) // 4) + " " * ((width - known) % 4)
    else:
        written += " " * (width - known) if "\t" in blanks else blanks[-(width - known) :]
    levels.append((width, written))
    return written
