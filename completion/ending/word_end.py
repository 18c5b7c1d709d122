"""Ends a text with a whole word: where a maximum cut it short, and where the cursor is inside a word."""

from __future__ import annotations

import re
from collections.abc import Collection

from completion.ending.context import Context
from completion.ending.extent import code_line
from completion.ending.rule import Ends, whole
from completion.request import Mode
from completion.syntax.brackets import LINE_CLOSERS
from completion.syntax.table import row_of

_WORD = re.compile(r"[\w$]+")
_LAST_WORD = re.compile(r"(?<![\w$])[\w$]+\Z")
_OPENERS = "([{"
_NUMBER = r"(?:(?<![\w$])(?<!\d\.)v?\d+|\A)(?:\.\d\w*)*\.?"  # a version is one word, also from its middle on
_ESCAPE = r"(?<!\\)\\+"  # a command begins with one, too
_TAIL = re.compile(rf"(?:{_ESCAPE})?(?<![\w$])[\w$]+\Z|{_ESCAPE}\Z|{_NUMBER}\Z")


def unfinished(text: str, context: Context) -> Ends:
    """End with a block's whole lines, or a single line's whole words, unless the text ends by itself."""
    if context.cut_short and not text[-1:].isascii():  # a flag or a joined emoji might have gone on
        text = text[: cluster_end(text, len(text) - 1)]
    has_lines = context.mode is Mode.BLOCK or code_line(text, context) is not None
    line_end = text.rfind("\n") if has_lines else -1
    sure = line_end if line_end >= 0 and text[:line_end].strip() else _whole_words(text, context)
    kept = text[:sure].removesuffix("\r") if context.cut_short else text
    return Ends(len(kept) if kept.strip() or not context.cut_short else 0, sure)


def mid_word(text: str, context: Context) -> Ends:
    """End before a text inside or directly before a word: its tail would follow the text.

    A manual request gets one, unless that says the tail of the word itself, which would follow again.
    """
    after = context.line_after[:1]
    in_formula = after == "$" and row_of(context.language).has_sentences
    is_word = after.isalnum() or after == "_" or (after == "$" and not in_formula)
    if not is_word or not text:
        return whole(text)
    return Ends(len(text) if context.invoked and not _says_tail(text, context) else 0, 0)


def _says_tail(text: str, context: Context) -> bool:
    """Return whether a text within a word begins with the word's tail, and does not end where that may follow.

    It may after a part of a name, as in `getUser‸Name`, and where the word that they make stands elsewhere, too.
    """
    word, tail = _WORD.match(text), _WORD.match(context.line_after)
    if not (word and tail and word[0].startswith(tail[0]) and _WORD.match(context.line_before[-1:])):
        return False
    found = _LAST_WORD.search(context.line_before + text)
    end = found[0] if found else ""
    if end and (word[0] == tail[0] or end.endswith("_") or tail[0][0] in "_$" or tail[0][0].isupper()):
        return False
    joined = re.compile(rf"(?<![\w$]){re.escape(end + tail[0])}(?![\w$])")
    return "\n" not in text and joined.search(context.near + context.suffix) is None


def whole_words(text: str, limit: int) -> int:
    """Return the length of the words and other clusters that end in the first `limit` characters of a text."""
    limit = cluster_end(text, limit)
    return _start_of_word(text, limit) if _WORD.match(text, limit) else limit


def cluster_end(text: str, limit: int) -> int:
    """Return the last offset up to a limit that splits no grapheme cluster of a text."""
    ends = cluster_ends(text)
    return limit if limit in ends else max(end for end in ends if end < limit)


def cluster_ends(text: str) -> Collection[int]:
    """Return the offsets in a text that split no grapheme cluster: no flag, joined emoji or letter with its marks."""
    if text.isascii():
        return range(len(text) + 1)
    import regex  # noqa: PLC0415 - 2 MB that most code does not need

    return {0, *(match.end() for match in regex.finditer(r"\X", text))}


def _whole_words(text: str, context: Context) -> int:
    """Return the length of the part that ends inside no word or string of the text, nor with what begins another one.

    A string of the text that the document's delimiter ends may be unfinished, but not empty.
    """
    end, begun = len(text), -1
    if not context.within_comment(text):  # quotes in a comment begin no string
        inside = context.scan(text)
        is_first = inside.string == context.before.string and not inside.string_start
        if inside.string and not is_first:
            begun = inside.string_start
            end = end if inside.string == context.before.string and context.after.string_end else begun
    end = _start_of_word(text, end)
    if (
        begun >= 0
        and end - begun <= len(context.before.string)
        and context.line_after.startswith(context.before.string)
    ):
        end = min(begun, end)
    return before_begun(text, end, context)


def before_begun(text: str, end: int, context: Context) -> int:
    """Return an end of a text, or the one before it with nothing after it that only begins: an opener, a separator."""
    after = context.line_after.lstrip()[:1]
    begin = f"{_OPENERS}," if after and after in LINE_CLOSERS else _OPENERS  # before a closer, no other item follows
    bare = len(text[:end].rstrip(f"{begin} \t"))
    return next((at for at in range(bare, end) if text[at] in begin), end)


def _start_of_word(text: str, end: int) -> int:
    match = _TAIL.search(text, 0, end)
    return match.start() if match else end
