"""Chooses between a line and a block by the code before the cursor."""

from __future__ import annotations

from dataclasses import replace

from completion.ending.context import Context
from completion.request import CompletionRequest, Mode
from completion.syntax.brackets import CLOSERS, LINE_CLOSERS
from completion.syntax.indent_style import depth, line_around
from completion.syntax.line_roles import opens_body, opens_words
from completion.syntax.table import row_of

_BEFORE_LITERAL = ("=", "(", ",", ":", "[", "return", "import", "export", "&")  # a brace after them opens no block


def cursor_context(request: CompletionRequest) -> Context:
    """Return the document around the cursor for stop rules and filters, with LINE or BLOCK in place of AUTO."""
    found = Context.of(request.prefix, request.suffix, request.language, request.mode, invoked=request.invoked)
    return replace(found, mode=decide(found)) if request.mode is Mode.AUTO else found


def decide(context: Context) -> Mode:
    """Return LINE or BLOCK for a cursor.

    BLOCK: after the opener of a block, and on an empty line where a block ends. LINE (the line may bring the body that
    it opens): everywhere else, as with text after the cursor, in strings, comments and expressions, at the end of a
    statement, and on an empty line between lines of a block.
    """
    if context.line_after.strip(LINE_CLOSERS):
        return Mode.LINE
    if context.line_before.strip():
        return Mode.BLOCK if _after_opener(context) else Mode.LINE
    if context.line_after.strip() or _block_continues(context):
        return Mode.LINE
    return Mode.LINE if _in_expression(context) else Mode.BLOCK


def _block_continues(context: Context) -> bool:
    """Return whether the block of an empty line continues below it."""
    own, last, below = context.line_before, context.line_above, context.line_below
    if not below or below.lstrip()[0] in CLOSERS:
        return False
    return depth(below) >= (depth(own + "|") if own else depth(last) + last.endswith((":", "{")))


def _in_expression(context: Context) -> bool:
    language, found = context.language, context.before
    if found.string or found.comment:
        return True
    if not found.open or row_of(language).has_sentences:
        return False
    opener = found.open[-1]
    if opener.character == "{":
        return context.near[: opener.offset].rstrip().endswith(_BEFORE_LITERAL)
    return not opens_words(line_around(context.near), language, ended=True)  # as in `each(function()`


def _after_opener(context: Context) -> bool:
    """Return whether the last token before the cursor opens a block."""
    line, language, found = context.line_before.rstrip(), context.language, context.before
    if found.string or found.comment:
        return False
    row = row_of(language)
    if row.clauses:
        return opens_body(line, language) and not found.open
    if opens_words(line, language, ended=True) or (row.opens_with_colon and context.line_before.endswith(":")):
        return True
    return line.endswith("{") and not line.removesuffix("{").rstrip().endswith(_BEFORE_LITERAL)
