"""Prevents doubled closers: brackets and quotes that the document already has after the cursor."""

from __future__ import annotations

import re
from collections import Counter, deque

from completion.ending.context import Context
from completion.ending.rule import Ends
from completion.ending.suffix_overlap import suffix_overlap
from completion.syntax.brackets import CLOSERS, LINE_CLOSERS, Scan, begun_delimiter, closed_by, scan
from completion.syntax.end_tags import VALUE, WITHIN_TAG, begun_end_tag, doubled_end_tag
from completion.syntax.lexer import CLOSER_OF, OPENER_OF
from completion.syntax.lexicon import lexicon_of
from completion.syntax.table import row_of

_PUNCTUATION = frozenset(";,:. {\t>")  # what editors and users put right after a closer
_QUOTES = frozenset("\"'`")
_BLANKS = frozenset(" \t")
_TAG_END = re.compile(r"""\s*/?>""")
_IN_TAG = re.compile(rf"""(?:[^<>"'{{/=]|{VALUE}|[/=](?!>))*+""")
_MAX_TAG = 1000  # characters before the cursor in which the tag around it begins


def closers(text: str, context: Context) -> Ends:
    """Replace, keep or end before each closer of the text whose opener is not in the text.

    The text replaces a closer directly after the cursor (editors insert it automatically). It ends before a closer that
    the document has further on, and before one without an opener, unless the language has such closers. A closer stays
    if its opener before the cursor is unclosed, or if the document lacks a closer. A text that ends before a closer is
    cut where it repeats the rest of the line. In comments, it only replaces what an editor has inserted.
    """
    begun = 0 if context.within_comment(text) else begun_delimiter(text, context.language, context.before.string)
    sure, within = len(text) - begun, text
    if 0 < begun < len(context.before.string) and context.line_after.startswith(context.before.string):
        within = text[:sure]  # the document's delimiter would end one quote too early
    if row_of(context.language).tags:
        sure = min(sure, _before_end_tag(text, context))
    if context.before.comment:
        line = text.partition("\n")[0]
        return Ends(len(text), sure, replaces=_inserted(line, context.line_before, context.line_after)[0])
    if row_of(context.language).tags:
        within = _without_tag_end(within, context)
        doubled = doubled_end_tag(within, context.prefix, context.suffix)
        within = within if doubled is None else _before(within, doubled)
    covered, last, cut, settled = _settle(within, context)
    if cut is not None:
        kept = _before(within, cut)
        ended = len(kept) if covered else suffix_overlap(kept, context).maybe  # it was no end of the text before
        return Ends(ended, min(sure, settled), replaces=covered)
    if covered:
        covered += _shared_punctuation(within[last:], context.line_after[covered:])
    return Ends(len(within), min(sure, settled), replaces=covered)


def _before_end_tag(text: str, context: Context) -> int:
    """Return the length of a text before an end tag at its end that may become one which the document has."""
    doubled = doubled_end_tag(text, context.prefix, context.suffix, unfinished=True)
    begun = len(text) - text.endswith("/") if doubled is None else doubled
    return min(begun, begun_end_tag(text, context.prefix))


def _without_tag_end(text: str, context: Context) -> str:
    """Return the text up to where it ends the tag around the cursor, if the document ends that tag on the same line."""
    if not row_of(context.language).tags or ">" not in text or ">" not in context.line_after:
        return text
    string = context.before.string
    if WITHIN_TAG.search(context.prefix[-_MAX_TAG:]) is None or "<" in context.line_after.partition(">")[0]:
        return text
    start = text.find(string) + 1 if string else 0
    end = _IN_TAG.match(text, start).end()  # type: ignore[union-attr]
    return text[:end].rstrip() if (start or not string) and _TAG_END.match(text, end) else text


def _settle(text: str, context: Context) -> tuple[int, int, int | None, int]:
    """Match the text's unopened closers with the document's.

    Returns:
        Number of characters after the cursor to replace; offset in the text after the last replaced closer; offset to
        cut at, None for no cut; offset of the first closer that stays only while its bracket is opened again.
    """
    result = context.scan(text)
    reach = _reach(context)
    kept = len(text)
    settled = _in_code_of_string(text, result, context)
    if settled is not None:
        return settled, len(text.rstrip("".join(_PUNCTUATION))), None, kept
    covered, last, cut = _closers_in_string(text, result, context)
    if cut is not None:
        return covered, last, cut, kept
    waiting = list(context.open)
    lone_closers = row_of(context.language).lone_closers
    opened = Counter(bracket.character for bracket in result.open)
    unopened = [closer for closer in result.unopened if closer.offset >= last]  # of a heredoc, the others are settled
    unread = Counter(OPENER_OF[closer.character] for closer in unopened)
    for closer in unopened:
        opener = OPENER_OF[closer.character]
        unread[opener] -= 1
        if closer.character in lone_closers and not any(bracket.character == opener for bracket in waiting):
            continue
        while waiting and CLOSER_OF[waiting[-1].character] != closer.character and waiting[-1].closed_at is None:
            waiting.pop()
        if not waiting or CLOSER_OF[waiting[-1].character] != closer.character:
            return covered, last, closer.offset, kept
        closed_at = waiting.pop().closed_at
        far = closed_at is not None and not covered <= closed_at < reach
        if closed_at is None or (far and _is_lacking(text, closer.offset, context)):
            continue
        if unread[opener] < opened[opener]:
            kept = min(kept, closer.offset) if far else kept
            continue  # opened again, as in `} else {` or `a), (b`: the document's closer closes the new bracket
        if far:
            return covered, last, closer.offset, kept
        covered, last = closed_at + 1, closer.offset + 1
    return covered, last, None, kept


def _in_code_of_string(text: str, found: Scan, context: Context) -> int | None:
    """Return how many characters after the cursor a text replaces that begins in a string's code or ends in a string.

    The result is None elsewhere. Strings in the code of a string are followed on the cursor's line only.
    """
    after = context.line_after
    if not context.before.waiting or after.strip(LINE_CLOSERS):
        return 0 if _continues_in_string(text, found, context) else None
    covered = 0
    for closer in closed_by(text, context.before, context.language):
        blanks = len(after[covered:]) - len(after[covered:].lstrip())
        if after.startswith(closer, covered + blanks):  # else the document lacks it
            covered += blanks + 1
    return covered


def _continues_in_string(text: str, found: Scan, context: Context) -> bool:
    """Return whether the document's end of the string ends another one that the text begins, as in `" + name + "`."""
    is_another = found.string_end > 0 and found.string == context.before.string  # not empty: the text ends it
    return is_another and context.after.string_end > 0 and context.unpaired(text) <= context.unpaired("")


def _closers_in_string(text: str, found: Scan, context: Context) -> tuple[int, int, int | None]:
    """Return the first three results of `_settle` for the string around the cursor and what is in it."""
    covered, last = _inner_closers(text, found, context)
    of_string, cut = _string_closer(text, found, context.line_after[covered:], context)
    return covered + of_string, found.string_end if of_string else last, cut


def _inner_closers(text: str, found: Scan, context: Context) -> tuple[int, int]:
    """Match the closers in the string or heredoc around the cursor with the document's: that of `"#{a}"`, of `"f(a)"`.

    So is a quote of a kind that begins no string in the language, such as a shell's backtick.

    Returns:
        Length of the document's closers that are after the cursor, to be replaced; offset after the text's.
    """
    inside, after = context.before.string, context.line_after
    if inside:
        begun = context.near[context.before.string_start + len(inside) :]
        return _inserted(text[: found.string_end] or text, begun, after.partition(inside)[0])
    quote = after[:1]
    if quote in _QUOTES and (quote not in lexicon_of(context.language).strings or context.in_heredoc):
        return _inserted(text.partition("\n")[0], context.line_before, after)
    return 0, 0


def _inserted(text: str, begun: str, after: str) -> tuple[int, int]:
    """Match closers of a text that is no code with those that an editor has inserted after the cursor.

    Args:
        text: Text at the cursor.
        begun: Text before the cursor, with what is to be closed.
        after: Text after the cursor.

    Returns:
        Number of characters of `after` that the text has, too; offset in the text after the last of them.
    """
    opened = [CLOSER_OF[bracket.character] for bracket in scan(begun, "").open]
    found = scan(text, "")
    unopened, again = deque(found.unopened), {CLOSER_OF[bracket.character] for bracket in found.open}
    covered = last = 0
    for index, closer in enumerate(after):
        if closer in _BLANKS:
            continue
        at = -1
        if closer in _QUOTES and all(each.count(closer) % 2 for each in (begun, text, after)):
            at = text.rfind(closer)
        elif opened and opened.pop() == closer and closer not in again and unopened:
            next_one = unopened.popleft()
            at = next_one.offset if next_one.character == closer else -1
        if at < last:
            break
        covered, last = index + 1, at + 1
    return covered, last


def _string_closer(text: str, found: Scan, after: str, context: Context) -> tuple[int, int | None]:
    """Match the text's end of the string around the cursor with the document's, on the rest `after` of its line.

    A delimiter after the cursor is the document's end of the string only if the string is closed: in `["‸"b"]` it
    begins another string.

    Returns:
        Length of the document's delimiter if it is right after the cursor, to be replaced, else 0; offset to cut at
        because the document's is further on, None for no cut: where the text ends a string of its kind the last time.
    """
    inside, end = context.before.string, found.string_end
    if not inside or not text[:end].endswith(inside):
        return 0, None
    if not context.after.string_end:
        return 0, None
    if after.startswith(inside):
        return len(inside), None
    reopened = (text[: at + len(inside)] for at in range(len(text), end, -1) if text.startswith(inside, at))
    ends = (each for each in reopened if context.scan(each).string != inside)
    last = (len(each) - len(inside) for each in ends if _ends_alike(each.removesuffix(inside), context))
    return 0, next(last, end - len(inside))


def _ends_alike(text: str, context: Context) -> bool:
    """Return whether a text ends in another string than it begins in, of the same kind."""
    return _continues_in_string(text, context.scan(text), context)


def _is_lacking(text: str, closer: int, context: Context) -> bool:
    """Return whether the document lacks this closer."""
    return context.unpaired(text[: closer + 1]) < context.unpaired(text[:closer])


def _reach(context: Context) -> int:
    """Return the length of the run of closers, quotes and blanks directly after the cursor."""
    quote = context.before.string
    allowed = CLOSERS | {" ", "\t"} | set(quote)
    return next((i for i, c in enumerate(context.line_after) if c not in allowed), len(context.line_after))


def _before(text: str, cut: int) -> str:
    """Return the text before a closer, without the closer's line if nothing else is on it."""
    kept = text[:cut]
    return kept.rstrip() if not kept[kept.rfind("\n") + 1 :].strip() else kept


def _shared_punctuation(rest: str, tail: str) -> int:
    """Return the length of the punctuation that the text and the document share after the replaced closer.

    If both go on after it, the document needs its own: in `f(‸, x)`, the comma after `a), b` is another one.
    """
    shared = 0
    for ours, theirs in zip(rest, tail, strict=False):
        if ours != theirs or ours not in _PUNCTUATION:
            break
        shared += 1
    if rest[shared:].strip() and tail[shared:].strip():
        return 0
    return len(tail[:shared].rstrip(" \t"))
