"""Ends a text that loops after the first run of the loop, in any script and of any length."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from completion.edits import common_length
from completion.ending.context import Context
from completion.ending.rule import Ends
from completion.ending.word_end import before_begun
from completion.syntax.indent_style import depth

MIN_LINE_REPEATS = 3
"""Minimum number of equal consecutive runs of lines that make a loop."""
MIN_PHRASE_REPEATS = 4
"""Minimum number of equal consecutive phrases at the end of a line that make a loop."""
MIN_ENDLESS = 48
"""Minimum number of characters that a growing line has repeated when it is taken for a loop without an end.

Of 240,000 lines of source files, 3 repeat as many and then go on in another way.
"""

_MIN_PHRASE = 4  # characters of a phrase
_WORD = re.compile(r"\w+")
_LETTER = re.compile(r"[^\W_]")
_FIRST_PICTOGRAPH = "\U0001f000"  # unlike a line of box drawing, a row of one emoji is nothing that people write


def loops(text: str, context: Context) -> Ends:
    """End after the first run of a loop of lines or phrases, of which the last whole line or a growing one is the end.

    A loop of phrases has no end before its line's: `f(f(f(f(x))))` and a format such as `%02x:%02x:%02x:%02x` are none.
    A growing line is over where it has repeated so much that no end of the loop is in sight.
    """
    start = text.rfind("\n") + 1
    end = _end_in_lines(text[:start].rstrip("\r\n"))
    if end is not None:
        return Ends(end, end, over=True)
    line, lines = text[start:].removesuffix("\r"), text.split("\n")
    phrase, begun = _phrase_ends(line)
    looped = _run_end(lines, MIN_LINE_REPEATS, grows=True) if line.strip() else len(lines)
    kept = before_begun(text, start + phrase, context) if phrase < len(line) else len(text)
    sure = before_begun(text, start + begun, context) if begun < len(line) else len(text)
    kept = min(kept, len("\n".join(lines[:looped])))
    sure = min(sure, len("\n".join(lines[: _run_end(lines, 1, grows=True)])))
    return Ends(kept, min(kept, sure), over=len(line) - phrase >= MIN_ENDLESS)


@lru_cache(maxsize=2)  # the lines above stay the same while a line grows
def _end_in_lines(text: str) -> int | None:
    """Return where a loop has run once that ends with the last of some whole lines; None if there is none."""
    lines, start = text.split("\n"), text.rfind("\n") + 1
    phrase, _ = _phrase_ends(text[start:])
    if phrase < len(text) - start:
        return start + phrase
    run = _run_end(lines, MIN_LINE_REPEATS, grows=False)
    return len("\n".join(lines[:run])) if run < len(lines) else None


def _run_end(lines: Sequence[str], repeats: int, *, grows: bool) -> int:
    """Return after how many lines a run of lines ends that repeats up to the last line; their number if none does.

    It repeats at least so often. If the text grows, the last line can be incomplete.
    """
    bare = [line.strip() for line in lines]
    first = count = len(bare)
    for period in range(1, min(count, count // repeats + 1)):
        same = bare[-1 - period].startswith(bare[-1]) if grows else bare[-1 - period] == bare[-1]
        start = count - (same and not _closes(lines[-1], lines[-1 - period]))
        while period < start < count and bare[start - 1] == bare[start - 1 - period]:
            start -= 1
        is_run = count - start >= max(1, (repeats - 1) * period)
        if is_run and start < first and any(map(_has_words, bare[start - period : start])):
            first = start
    return first


def _closes(line: str, earlier: str) -> bool:
    """Return whether a line is less deep than one that reads the same, as `end` and `</div>` of nested blocks are."""
    return bool(line.strip()) and depth(line) < depth(earlier)


def _phrase_ends(line: str) -> tuple[int, int]:
    """Return the first ends of a phrase that repeats up to the line's end: often enough for a loop, and at all.

    They are the line's length if there is no such phrase. The last phrase can be incomplete.
    """
    looped = begun = count = len(line)
    backwards = line[::-1]
    period = backwards.find(backwards[:1], _MIN_PHRASE) if _has_words(line) else -1
    while period > 0:
        start = count - common_length(backwards, backwards[period:])
        repeats = count - start >= (MIN_PHRASE_REPEATS - 1) * period
        if (repeats or start < begun) and _has_words(line[start - period : start]):
            # Phrases that end further on are these again.
            begun = _first_end(line, period, range(start, min(begun, start + period)), begun)
            last = min(looped, start + period, count - (MIN_PHRASE_REPEATS - 1) * period + 1)
            looped = _first_end(line, period, range(start, last), looped)
        period = backwards.find(backwards[0], period + 1)
    return looped, begun


def _first_end(line: str, period: int, ends: range, other: int) -> int:
    """Return the first of the ends of a phrase that splits no word, unless all of it is one; `other` if none is."""
    for end in ends:
        first, last = line[end - period], line[end - 1]
        splits = _WORD.match(first) and _WORD.match(last) and not _WORD.fullmatch(line[end - period : end])
        if not first.isspace() and not splits:
            return end
    return other


def _has_words(text: str) -> bool:
    """Return whether a text says more than a pattern of punctuation: by its letters, or by symbols such as emoji."""
    is_told = len(_LETTER.findall(text)) >= 3 or (not text.isascii() and len(set("".join(text.split()))) >= 3)
    return is_told or max(text, default="") >= _FIRST_PICTOGRAPH
