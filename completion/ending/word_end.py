"""Ends a text that was cut short at a maximum with its last whole line or word.

It ends never inside a word or string, nor with the bracket or comma that begins what is missing.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from completion.ending.context import Context
from completion.ending.extent import code_line
from completion.ending.rule import Ends
from completion.request import Mode
from completion.syntax.brackets import LINE_CLOSERS

_WORD = re.compile(r"[\w$]")
_OPENERS = "([{"
_NUMBER = r"(?:(?<![\w$])v?\d+|\A)(?:\.\d+)*\.?"  # a version or an address is one word, also from its middle on
_TAIL = re.compile(rf"\\*[\w$]+\Z|\\+\Z|{_NUMBER}\Z")  # with the backslash of a command or an escape


def unfinished(text: str, context: Context) -> Ends:
    """End with a block's whole lines, or a single line's whole words, unless the text ends by itself."""
    if context.cut_short and not text[-1:].isascii():  # a flag or a joined emoji might have gone on
        text = text[: max(end for end in cluster_ends(text) if end < len(text))]
    has_lines = context.mode is Mode.BLOCK or code_line(text, context) is not None
    line_end = text.rfind("\n") if has_lines else -1
    sure = line_end if line_end >= 0 and text[:line_end].strip() else _whole_words(text, context)
    kept = text[:sure].removesuffix("\r") if context.cut_short else text
    return Ends(len(kept) if kept.strip() or not context.cut_short else 0, sure)


def whole_words(text: str, limit: int) -> int:
    """Return the length of the words and other clusters that end in the first `limit` characters of a text."""
    if limit not in (ends := cluster_ends(text)):
        limit = max(end for end in ends if end < limit)
    return _start_of_word(text, limit) if _WORD.match(text, limit) else limit


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
    after = context.line_after.lstrip()[:1]
    begin = f"{_OPENERS}," if after and after in LINE_CLOSERS else _OPENERS  # before a closer, no other item follows
    bare = len(text[:end].rstrip(f"{begin} \t"))
    return next((at for at in range(bare, end) if text[at] in begin), end)


def _start_of_word(text: str, end: int) -> int:
    match = _TAIL.search(text, 0, end)
    return match.start() if match else end
