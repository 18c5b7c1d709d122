"""The document around the cursor, computed once for a request, and whether a line or a block is completed there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from completion.request import CompletionRequest, Mode
from completion.syntax.block_end import block_end_at
from completion.syntax.bracket_pairs import OpenBracket, open_at_cursor
from completion.syntax.brackets import CLOSERS, LINE_CLOSERS, SCAN_AFTER, Lexer, Scan, scan
from completion.syntax.indent_style import IndentStyle, depth, line_around
from completion.syntax.lexicon import string_ended_by
from completion.syntax.line_roles import opens_body, opens_words
from completion.syntax.table import row_of

SCAN_BEFORE = 16_000
"""Minimum number of characters before the cursor that are scanned for open brackets and strings."""
SCAN_STRINGS = 40_000
"""Characters after the cursor that are scanned for the end of a multi-line string."""

_STEP = 4_000  # characters before the scanned ones, in multiples of this: the same ones at key after key
_BEFORE_LITERAL = ("=", "(", ",", ":", "[", "return", "import", "export", "&")  # a brace after them opens no block
_MAX_LITERAL = 16_000  # of a longer string, the beginning is more likely a quote that was misread


@dataclass(frozen=True, slots=True, eq=False)  # by identity, as a key of what is kept
class Context:
    """The document around the cursor.

    Attributes:
        prefix: Text before the cursor.
        near: The last part of it, as far as it is scanned.
        suffix: Text after the cursor.
        language: LSP language identifier.
        mode: LINE or BLOCK; AUTO until it is decided.
        invoked: Whether the request is manual: no suggestion is hidden for the cursor's position.
        cut_short: Whether decoding ended at a maximum (tokens, bytes, time) and not at the text's own end.
        line_before: The cursor's line up to the cursor.
        line_above: Nearest line above the cursor's that is not blank; "" if there is none.
        line_after: The cursor's line from the cursor on, without its line break.
        following: Lines after the cursor's line.
        line_below: Next line below the cursor's that is not blank; "" if there is none.
        before: Brackets and strings that are open at the cursor.
        after: Closers after the cursor.
        open: Openers before the cursor, each with its closer after the cursor, innermost last.
        indent: The document's indentation style.
        lexer: Scans texts at the cursor.
    """

    prefix: str
    near: str
    suffix: str
    language: str
    mode: Mode
    invoked: bool
    cut_short: bool
    line_before: str
    line_above: str
    line_after: str
    following: tuple[str, ...]
    line_below: str
    before: Scan
    after: Scan
    open: tuple[OpenBracket, ...]
    indent: IndentStyle
    lexer: Lexer

    @classmethod
    def of(
        cls, prefix: str, suffix: str, language: str, mode: Mode, *, invoked: bool = False, cut_short: bool = False
    ) -> Context:
        """Compute the context of a request."""
        near, near_after = near_before(prefix, language), suffix[:SCAN_AFTER]
        before = scan(near, language)
        after = scan(near_after, language, before if closes_string(before, suffix, language) else "")
        lines, line_before = near_after.split("\n"), prefix[prefix.rfind("\n") + 1 :]
        return cls(
            prefix=prefix,
            near=near,
            suffix=suffix,
            language=language,
            mode=mode,
            invoked=invoked,
            cut_short=cut_short,
            line_before=line_before,
            line_above=prefix[: len(prefix) - len(line_before)].rstrip().rpartition("\n")[2],
            line_after=lines[0],
            following=tuple(lines[1:]),
            line_below=next((line for line in lines[1:] if line.strip()), ""),
            before=before,
            after=after,
            open=open_at_cursor(before, after, near, near_after),
            indent=IndentStyle.of(prefix, suffix),
            lexer=Lexer(language, before, "" if before.string or before.comment else line_before),
        )

    def scan(self, text: str) -> Scan:
        """Return the brackets, strings and comments of a text at the cursor."""
        return self.lexer.scan(text)

    def block_end(self, text: str, start: int = 0) -> int | None:
        """Return where the block of a text at the cursor ends that it is in from `start` on; None while it goes on."""
        end = block_end_at(self.near + text[:start], self.suffix, self.language).end(text[start:])
        return None if end is None else start + end

    def within_comment(self, text: str) -> bool:
        """Return whether a text at the cursor ends inside the comment that the cursor is in."""
        return self.before.comment and "\n" not in text


def near_before(prefix: str, language: str) -> str:
    """Return the last part of the text before a cursor, of `SCAN_BEFORE` characters or more, which begins in code.

    From the middle of a docstring on, code would be read as strings and strings as code, up to the cursor.
    """
    start = max(0, len(prefix) - SCAN_BEFORE) // _STEP * _STEP
    return prefix[_code_end(prefix[:start], language) :]


@lru_cache(maxsize=4)  # a prefix without its last part stays the same while the user types
def _code_end(text: str, language: str) -> int:
    """Return the offset where the string or comment that a text ends inside begins; its length if it ends in code."""
    found = Lexer(language).scan(text)  # which keeps nothing of a long document
    is_inside = (found.string or found.comment) and len(text) - found.string_start <= _MAX_LITERAL
    return found.string_start if is_inside else len(text)


def closes_string(before: Scan, suffix: str, language: str) -> bool:
    """Return whether the string around the cursor ends after the cursor.

    If the text after the cursor on its line is complete code by itself, the string's end is not typed yet, unless its
    first quote begins no string: one without `=` before it in HTML, one within a word. A string of several lines may
    end on a later one, unless the rest of that line begins another string.
    """
    if not before.string:
        return False
    line = suffix[:SCAN_AFTER].partition("\n")[0]
    inside, outside = scan(line, language, before), scan(line, language)
    if not inside.string_end and string_ended_by(before.string, language).lines:
        further = suffix[:SCAN_STRINGS]
        whole = scan(further, language, before)
        rest = further[whole.string_end :].partition("\n")[0]
        return not (whole.string or scan(rest, language).string) and scan(further, language).string != ""
    if not inside.string_end or inside.string:
        return False
    first = scan(line[: inside.string_end], language)
    return bool(outside.string) or inside.string_end == len(line) or not (first.string or first.comment)


def cursor_context(request: CompletionRequest) -> Context:
    """Return the document around the cursor for all rules, with LINE or BLOCK in place of AUTO."""
    found = Context.of(request.prefix, request.suffix, request.language, request.mode, invoked=request.invoked)
    return replace(found, mode=_decide(found)) if request.mode is Mode.AUTO else found


def _decide(context: Context) -> Mode:
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
    return depth(below) >= (depth(own) if own else depth(last) + last.endswith((":", "{")))


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
