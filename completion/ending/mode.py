"""Chooses between a line and a block by the syntax at the cursor."""

from __future__ import annotations

from contextlib import suppress

from completion.ending.context import Context, near_before
from completion.errors import ParseLimitError
from completion.request import CompletionRequest, Mode
from completion.syntax.brackets import CLOSERS, LINE_CLOSERS, scan
from completion.syntax.indent_style import depth, line_around
from completion.syntax.line_roles import opens_body, opens_words
from completion.syntax.parsing import IN_PROCESS, Parsing
from completion.syntax.table import row_of
from completion.syntax.trees import brace_opens_block, is_within_expression

_MAX_CHARACTERS_AFTER = 4_000  # of the suffix that are parsed
_BEFORE_LITERAL = ("=", "(", ",", ":", "[", "return", "import", "export", "&")  # a brace after them opens no block


def cursor_context(request: CompletionRequest, parsing: Parsing = IN_PROCESS) -> Context:
    """Return the document around the cursor for stop rules and filters, with LINE or BLOCK in place of AUTO."""
    mode = request.mode
    if mode is Mode.AUTO:
        mode = decide(request.prefix, request.suffix, request.language, parsing)
    return Context.of(request.prefix, request.suffix, request.language, mode, invoked=request.invoked)


def decide(prefix: str, suffix: str, language: str, parsing: Parsing = IN_PROCESS) -> Mode:
    """Return LINE or BLOCK for a cursor between `prefix` and `suffix`.

    BLOCK: after the opener of a block, and on an empty line where a block ends. LINE (the line may bring the body that
    it opens): everywhere else, as with text after the cursor, in strings, comments and expressions, at the end of a
    statement, and on an empty line between lines of a block.
    """
    line_before = prefix[prefix.rfind("\n") + 1 :]
    line_after = suffix.partition("\n")[0]
    if line_after.strip(LINE_CLOSERS):
        return Mode.LINE
    before, after = near_before(prefix, language), suffix[:_MAX_CHARACTERS_AFTER]
    if line_before.strip():
        return Mode.BLOCK if _after_opener(before, after, line_before, language, parsing) else Mode.LINE
    if line_after.strip():
        return Mode.LINE
    if _block_continues(before, after):
        return Mode.LINE
    return Mode.LINE if _in_expression(before, after, language, parsing) else Mode.BLOCK


def _block_continues(before: str, after: str) -> bool:
    """Return whether the block of an empty line continues below it."""
    above, _, indentation = before.rpartition("\n")
    last = above.rstrip().rpartition("\n")[2]
    below = next((line for line in after.split("\n")[1:] if line.strip()), "")
    if not below or below.lstrip()[0] in CLOSERS:
        return False
    return depth(below) >= (depth(indentation + "|") if indentation else depth(last) + last.endswith((":", "{")))


def _in_expression(before: str, after: str, language: str, parsing: Parsing) -> bool:
    with suppress(ParseLimitError):
        if parsing(is_within_expression, before, after, language):
            return True
    found = scan(before, language)
    in_brackets = bool(found.open) and found.open[-1].character != "{" and not row_of(language).has_sentences
    if found.string or found.comment or not in_brackets:
        return bool(found.string) or found.comment
    return not opens_words(line_around(before), language, ended=True)  # as in `each(function()`


def _after_opener(before: str, after: str, line_before: str, language: str, parsing: Parsing) -> bool:
    """Return whether the last token before the cursor opens a block."""
    line = line_before.rstrip()
    found = scan(before, language)
    if found.string or found.comment:
        return False
    row = row_of(language)
    if row.clauses:
        return opens_body(line, language) and not found.open
    if opens_words(line, language, ended=True) or (row.opens_with_colon and line_before.endswith(":")):
        return True
    if not line.endswith("{"):
        return False
    opens: bool | None = None
    with suppress(ParseLimitError):
        opens = parsing(brace_opens_block, before, after, language)
    if opens is None:  # the text before the brace decides
        return not line.removesuffix("{").rstrip().endswith(_BEFORE_LITERAL)
    return opens
