"""Chooses how much of a text stays and what it replaces so that brackets, quotes and tags are in pairs."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from completion.edits import common_length
from completion.ending.context import Context
from completion.syntax.brackets import CLOSERS, SCAN_AFTER, Scan, scan
from completion.syntax.lexer import CLOSER_OF
from completion.syntax.lexicon import string_ended_by
from completion.syntax.table import row_of

_QUOTES = "\"'`"
_CLOSING = re.compile(r"[\"'`)\]}]")
_PUNCTUATION = ";,:. {\t>"  # what editors and users put right after a closer
_MAX_CUTS = 8  # closers of a text that are tried as its end, from its first one


class Lacks(NamedTuple):
    """Numbers of brackets and quotes without a partner in a document with a text.

    Attributes:
        hard: Closers without an opener, and strings without an end that the text does not begin itself.
        waiting: Openers before the cursor without a closer.
        own: Openers of the text without one.
        own_string: Whether a string that the text begins has no end.
    """

    hard: int
    waiting: int
    own: int
    own_string: int


def lacks(text: str, context: Context, replaces: int = 0) -> Lacks:
    """Return what the document around the cursor lacks with a text; within a comment or heredoc, nothing counts."""
    if context.within_comment(text) or (context.before.in_heredoc and "\n" not in text):
        return Lacks(0, 0, 0, 0)
    on_line = context.scan(text + context.line_after[replaces:])
    below = _below(context.suffix[len(context.line_after) : SCAN_AFTER], context.language, on_line.string)
    lone = row_of(context.language).lone_closers
    paired = {opener.closed_at for opener in context.open}
    stack, hard, left = _waiting(context), 0, list[bool]()
    opened = [(CLOSER_OF[one.character], one.offset < len(text)) for one in on_line.open]
    near = [(one.character, one.offset - len(text) + replaces) for one in on_line.unopened]
    further = [(one.character, one.offset + len(context.line_after)) for one in below.unopened]
    further = [(closer, offset) for closer, offset in further if closer not in lone or offset in paired]
    for part in (near, further):
        for closer, offset in part:
            while stack and stack[-1][0] != closer and (stack[-1][1] or (closer, False) in stack):
                left.append(stack.pop()[1])
            if stack and stack[-1][0] == closer:
                stack.pop()
            else:
                hard += closer not in lone or offset in paired
        stack += opened if part is near else ()
    left += [is_own for _, is_own in stack]
    in_string = context.scan(text)
    own_string = int(bool(on_line.string and in_string.string) and in_string.string_start > 0)
    if len(on_line.string) == 1 and (own_string or not string_ended_by(on_line.string, context.language).lines):
        hard += not own_string
    elif below.string != context.after.string:
        hard += 1
    return Lacks(hard, left.count(False), left.count(True), own_string)


def joint(text: str, context: Context) -> tuple[int, int]:
    """Return how much of a text stays, and what it replaces after the cursor, so that the document lacks least.

    Of equal ones, the whole text stays, or the longest part, and replaces least. In a comment, all stays.
    """
    if _CLOSING.search(text) is None:
        return len(text), 0
    if (closed := _closed_and_begun_again(text, context)) is not None:
        return before_closer(text, closed), 0
    found = {len(text): _replaced(text, context)}
    if any(found[len(text)][0]) and not context.before.comment:
        cuts = [closer.offset for closer in context.scan(text).unopened]
        if inside := context.before.string:
            cuts += [each.start() for each in re.finditer(re.escape(inside), text)]
        found |= {cut: _replaced(text[:cut], context) for cut in sorted(cuts)[:_MAX_CUTS]}
    length = min(found, key=lambda each: (found[each][0], each < len(text), -each))
    replaces = found[length][1]
    return (before_closer(text, length), replaces) if length < len(text) else (length, _shared(text, replaces, context))


def _closed_and_begun_again(text: str, context: Context) -> int | None:
    """Return where a text closes what the document closes after it, if it then only begins the same again."""
    closer = CLOSER_OF.get(text.rstrip()[-1:], "")
    if not closer or not context.line_after.startswith(closer):
        return None
    unopened = (one.offset for one in scan(text, "").unopened if one.character == closer)
    return next((at for at in unopened if len(text[at + 1 :].strip()) == 1), None)


def closers_at(context: Context) -> set[str]:
    """Return what closes something after a cursor: brackets, the string around it, quotes that the line has begun."""
    begun = [quote for quote in _QUOTES if context.line_before.count(quote) % 2]
    return {*CLOSERS, *begun, *context.before.string}


def _replaced(text: str, context: Context) -> tuple[tuple[int, int], int]:
    """Return what a document lacks at least with a text, also within a string, and what the text replaces then."""
    found, choices = [], _choices(text, context)
    in_text = bool(context.before.string) and not context.before.waiting  # else in code within a string
    for replaces in choices:
        lacking = lacks(text, context, replaces)
        as_text = _lacks_as_text(text, context, replaces, lacking) if in_text or len(choices) > 1 else 0
        found.append((lacking.hard + lacking.waiting, lacking.own + lacking.own_string, as_text, replaces))
    hard, _, as_text, replaces = min(found)
    return (hard, as_text if in_text else 0), replaces


def _choices(text: str, context: Context) -> list[int]:
    """Return how many characters after the cursor a text may replace.

    These are closers, each of which it has in their order, and those between other marks if it ends with all of them.
    """
    after, delimiter = context.line_after, context.before.string
    choices, position, index = [0], 0, 0
    while index < len(after):
        one = delimiter if delimiter and after.startswith(delimiter, index) else after[index]
        index += len(one)
        if one in CLOSERS or one in _QUOTES or one == delimiter:
            position = text.find(one, position) + len(one)
            if position < len(one):
                break
            choices.append(index)
        elif one not in " \t":
            break
    whole, least = text.rstrip(), choices[-1]
    ends = (at for at, one in enumerate(after, 1) if at > least and one in CLOSERS)
    return choices + [at for at in ends if whole.endswith(after[:at])]


def _lacks_as_text(text: str, context: Context, replaces: int, lacking: Lacks) -> int:
    """Return how many brackets and quotes of the cursor's line have no partner if strings and comments are code."""
    line = f"{context.line_before}{text}{context.line_after[replaces:]}"
    found = scan(line, "")
    quotes = sum((line.count(quote) - line.count(f"\\{quote}")) % 2 for quote in _QUOTES)
    return max(0, len(found.open) + len(found.unopened) - lacking.own) + max(0, quotes - lacking.own_string)


def _waiting(context: Context) -> list[tuple[str, bool]]:
    """Return the closers that the openers before the cursor need, innermost last, none of them the text's own.

    No block counts that has its closer further down than is looked at, or lacks it around one that has it.
    """
    found, has_inner = list[tuple[str, bool]](), False
    for opener in reversed(context.open):
        if opener.closed_at != SCAN_AFTER and not (opener.closed_at is None and has_inner and opener.character == "{"):
            found.append((CLOSER_OF[opener.character], False))
        has_inner |= opener.closed_at is not None
    return found[::-1]


@lru_cache(maxsize=8)  # the lines below stay the same while a suggestion grows
def _below(lines: str, language: str, string: str) -> Scan:
    return scan(lines, language, string)


def before_closer(text: str, cut: int) -> int:
    """Return the length of the text before a closer, without the closer's line if nothing else is on it."""
    kept = text[:cut]
    return len(kept.rstrip()) if not kept[kept.rfind("\n") + 1 :].strip() else cut


def _shared(text: str, replaces: int, context: Context) -> int:
    """Return what a text replaces with the punctuation that it and the document share after the last replaced closer.

    If both go on after it in ways of their own, the document needs its own: in `f(‸, x)`, `a), b` has another comma.
    """
    if not replaces:
        return 0
    rest, tail = text[text.rfind(context.line_after[replaces - 1]) + 1 :], context.line_after[replaces:]
    if rest.rstrip().endswith(tail.rstrip()):
        return len(context.line_after.rstrip())
    same = rest[: common_length(rest, tail)]
    shared = len(same) - len(same.lstrip(_PUNCTUATION))
    goes_on = rest[shared:].strip() and tail[shared:].strip()
    return replaces if goes_on else replaces + len(tail[:shared].rstrip(" \t"))
