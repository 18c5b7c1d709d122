"""Ends a text before a repetition of the text after the cursor on its line."""

from __future__ import annotations

import re
from itertools import islice

from completion.changed_span import common_length
from completion.ending.context import Context
from completion.ending.rule import Ends, whole
from completion.syntax.brackets import CLOSERS

MIN_OVERLAP = 3
"""Minimum length of a repetition in characters; shorter ones match by chance.

A separator, the word at the cursor and the whole rest of the line count at any length.
"""

_MAX_STARTS = 32  # starts of a repetition that are tried; only a text that repeats itself has more
_SEPARATORS = frozenset(",;:{")
_WORD = re.compile(r"\w+")
_ASSIGNS = re.compile(r"[-+*/%|&^:]?=[ \t]")
_ANNOTATES = re.compile(r"[ \t]*:[ \t]")
_TWO = re.compile(r"\w\w")
_LAST_WORD = re.compile(r"\w+\Z")
_LETTER = re.compile(r"[^\W_]")


def suffix_overlap(text: str, context: Context) -> Ends:
    """End where the text begins to repeat the rest of the cursor's line, up to the text's end.

    From a closer after the cursor on, a whole word that both have is enough, and of an assignment, its operator: what
    the text has instead of the rest would stand before it. The same holds where the text goes on after its first word
    as the line does after the cursor: in `return v‸ or 0`, `alue or 1` is cut to `alue`. A cut must not leave
    more brackets unmatched: `f(x)` before `)` keeps its closer. If only closers follow the cursor, also of the string
    around it, they are left to the `closers` rule.
    """
    tail = repeatable_rest(context)
    if not tail:
        return whole(text)
    word = _WORD.match(text)
    candidates = [i for i, character in enumerate(text) if character == tail[0] or (word and i == word.end())]
    sure = next((i for i in candidates if _may_repeat(text, i, tail, context)), len(text))
    starts = list(islice((i for i in candidates if _repeats_at(text, i, tail, context)), _MAX_STARTS))
    unpaired = context.unpaired(text) if starts else 0
    start = next((i for i in starts if context.unpaired(text[:i]) <= unpaired), None)
    kept = len(text if start is None else before_rest(text, start, context))
    return Ends(kept, min(kept, sure))


def before_rest(text: str, start: int, context: Context) -> str:
    """Return the text before `start`, where the repetition begins, without the blanks that the line's rest has."""
    after = context.line_after
    return text[:start].removesuffix(after[: len(after) - len(after.lstrip())])


def repeatable_rest(context: Context) -> str:
    """Return the rest of the cursor's line that the text may repeat, "" if only closers follow the cursor."""
    tail = context.line_after.strip()
    return "" if set(tail) <= CLOSERS | set(context.before.string) else tail


def _repeats_at(text: str, start: int, tail: str, context: Context) -> bool:
    rest = text[start:]
    if _repeats(rest, tail, context) or _ends_alike(text, start, tail, context) or _replaces(rest, tail, context):
        return True
    if not _ends_first_word(text, start):
        return False
    return (_calls_alike(rest, context) and _ends_call(text)) or _goes_on_alike(rest, context)


def _may_repeat(text: str, start: int, tail: str, context: Context) -> bool:
    rest = text[start : start + len(tail) + 1]
    if tail.startswith(rest[: len(tail)].rstrip()) or _replaces(rest, tail, context):
        return True
    return _ends_first_word(text, start) and (_calls_alike(rest, context) or _goes_on_alike(text[start:], context))


def _goes_on_alike(rest: str, context: Context) -> bool:
    """Return whether a text goes on as the line does after the cursor, with a word or annotation.

    They differ further on.
    """
    shared = _shared(rest, context.line_after)
    if _LETTER.search(shared) and len("".join(shared.split())) >= MIN_OVERLAP:
        return True
    annotates = _ANNOTATES.match(context.line_after)
    return annotates is not None and rest.startswith(annotates.group())


def _calls_alike(rest: str, context: Context) -> bool:
    """Return whether a text goes on with a call, as the line does after the cursor."""
    return rest.startswith("(") and context.line_after.startswith("(")


def _ends_call(text: str) -> bool:
    """Return whether a text ends with a call, after which no other parentheses can follow as arguments."""
    return text.rstrip(":;{ \t").endswith(")")


def _ends_first_word(text: str, start: int) -> bool:
    """Return whether the first word of a text ends at an offset."""
    word = _WORD.match(text)
    return word is not None and word.end() == start


def _replaces(rest: str, tail: str, context: Context) -> bool:
    """Return whether `rest` and the tail begin with the same assignment, or the same closer and a whole word.

    After a closer, they differ further on.
    """
    if not rest.startswith(tail[0]):
        return False
    if assigns := _ASSIGNS.match(tail):
        return rest.startswith(assigns.group())
    if tail[0] not in CLOSERS | set(context.before.string) or tail.startswith(rest):
        return False
    return any(len(word) >= MIN_OVERLAP and _LETTER.search(word) for word in _WORD.findall(_shared(rest, tail)))


def _shared(rest: str, tail: str) -> str:
    """Return the common beginning of two texts, without a word that goes on in one of them."""
    shared = rest[: common_length(rest, tail)]
    goes_on = shared and any(_TWO.match(text, len(shared) - 1) for text in (rest, tail))
    return _LAST_WORD.sub("", shared) if goes_on else shared


def _repeats(rest: str, tail: str, context: Context) -> bool:
    """Return whether `rest` is a beginning of the tail, or begins with the tail and continues as the document does."""
    rest = rest.rstrip()
    if rest in _SEPARATORS:
        return tail.startswith(rest)
    if not rest.startswith(tail[: len(rest)]):
        return False
    if len(rest) <= len(tail):
        if not _LETTER.search(rest):
            return len(rest) >= 2 and rest == tail
        inside_word = rest != tail and _WORD.fullmatch(tail[len(rest) - 1 : len(rest) + 1])
        return len(rest) >= MIN_OVERLAP and not inside_word
    if not _LETTER.search(tail) or _WORD.fullmatch(tail):
        return False
    beyond = rest[len(tail) :]
    first, line_break, second = beyond.partition("\n")
    below = context.following[0] if context.following else ""
    return len(tail) >= MIN_OVERLAP and (not line_break or (not first.strip() and below.startswith(second)))


def _ends_alike(text: str, start: int, tail: str, context: Context) -> bool:
    """Return whether the text from `start` on is the word at the cursor or the whole rest of the cursor's line."""
    rest = text[start:].rstrip()
    first_word = _WORD.match(context.line_after)
    if first_word is not None:
        return rest in (first_word.group(), tail)
    boundary = start == 0 or not _WORD.match(text[start - 1])
    return rest == tail and _WORD.search(tail) is not None and boundary
