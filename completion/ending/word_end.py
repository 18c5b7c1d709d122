"""Ends a text that was cut short at a maximum with its last whole line or word.

It ends never inside a word or string, nor with the bracket that begins what is missing.
"""

from __future__ import annotations

import re

from completion.ending.context import Context
from completion.ending.extent import code_line
from completion.ending.rule import Ends
from completion.request import Mode

_WORD = re.compile(r"[\w$]")
_OPENERS = "([{"
_NUMBER = r"(?:(?<![\w$])v?\d+|\A)(?:\.\d+)*\.?"  # a version or an address is one word, also from its middle on
_TAIL = re.compile(rf"\\*[\w$]+\Z|\\+\Z|{_NUMBER}\Z")  # with the backslash of a command or an escape


def unfinished(text: str, context: Context) -> Ends:
    """End with a block's whole lines, or a single line's whole words, unless the text ends by itself."""
    has_lines = context.mode is Mode.BLOCK or code_line(text, context) is not None
    line_end = text.rfind("\n") if has_lines else -1
    sure = line_end if line_end >= 0 and text[:line_end].strip() else _whole_words(text, context)
    kept = text[:sure].removesuffix("\r") if context.cut_short else text
    return Ends(len(kept) if kept.strip() or not context.cut_short else 0, sure)


def whole_words(text: str, limit: int) -> int:
    """Return the length of the words that end in the first `limit` characters of a text."""
    return _start_of_word(text, limit) if _WORD.match(text, limit) else limit


def _whole_words(text: str, context: Context) -> int:
    """Return the length of the part that ends neither inside a word or string of the text nor with a bracket."""
    end = len(text)
    if not context.within_comment(text):  # quotes in a comment begin no string
        inside = context.scan(text)
        still_first = inside.string and not inside.string_start and context.before.string
        if inside.string and not still_first:
            end = inside.string_start
    end = _start_of_word(text, end)
    bare = len(text[:end].rstrip(f"{_OPENERS} \t"))
    return next((at for at in range(bare, end) if text[at] in _OPENERS), end)


def _start_of_word(text: str, end: int) -> int:
    match = _TAIL.search(text, 0, end)
    return match.start() if match else end
