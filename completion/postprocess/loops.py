"""Cuts a text that loops after the first run of the loop."""

from __future__ import annotations

import re
from dataclasses import replace

from completion.changed_span import common_length
from completion.postprocess.context import Context
from completion.request import Suggestion

MIN_LINE_REPEATS = 3
"""Minimum number of equal consecutive runs of lines that make a loop."""
MIN_PHRASE_REPEATS = 4
"""Minimum number of equal consecutive phrases at the end of a line that make a loop."""
MIN_ENDLESS = 48
"""Minimum number of characters that a growing line has repeated when it is taken for a loop without an end.

Of 240,000 lines of source files, 3 repeat as many and then go on in another way.
"""

_MAX_RUN_LINES = 8  # lines that repeat together, at most
_MIN_PHRASE, _MAX_PHRASE = 4, 60  # bounds of the length of a phrase, in characters
_WORD = re.compile(r"\w+")


def loops(suggestion: Suggestion, context: Context) -> Suggestion:  # noqa: ARG001  (a filter's signature)
    """Cut the text after the first run of a loop of lines or phrases.

    A loop of phrases has no end before its line's: `f(f(f(f(x))))` and a format such as `%02x:%02x:%02x:%02x` are none.
    """
    text = suggestion.text
    lines = text.split("\n")
    offset = 0
    for index, line in enumerate(lines):
        phrase = _phrase_end(line.removesuffix("\r"), MIN_PHRASE_REPEATS)
        if phrase is not None:
            return replace(suggestion, text=text[: offset + phrase])
        offset += len(line) + 1
        period = _period(lines, index)
        if period:
            return replace(suggestion, text="\n".join(lines[: index + period]))
    return suggestion


def endless_start(text: str) -> int | None:
    """Return where a loop of phrases in the last line begins to repeat if no end of it is in sight, None otherwise."""
    start = text.rfind("\n") + 1
    phrase = _phrase_end(text[start:], MIN_PHRASE_REPEATS) if len(text) - start > MIN_ENDLESS else None
    return None if phrase is None or len(text) - start - phrase < MIN_ENDLESS else start + phrase


def stable_length(text: str, _context: Context) -> int:
    """Return the length of the part of an unfinished text that the filter keeps however the text continues."""
    lines = text.split("\n")
    last = lines[-1]
    return min(_unlooped_lines(lines), len(text) - len(last) + (_phrase_end(last) or len(last)))


def _unlooped_lines(lines: list[str]) -> int:
    first = len(lines)
    for period in range(1, _MAX_RUN_LINES + 1):
        index = len(lines)
        while index > period and _repeats(lines, index - 1, period):
            index -= 1
        first = min(first, index)
    return len("\n".join(lines[:first]))


def _repeats(lines: list[str], index: int, period: int) -> bool:
    line, before = lines[index].strip(), lines[index - period].strip()
    return before.startswith(line) if index == len(lines) - 1 else line == before


def _period(lines: list[str], start: int) -> int:
    """Return the length of a run of lines at `start` that repeats MIN_LINE_REPEATS times in a row; 0 if there is none.

    The last line of the last run can be incomplete.
    """
    for period in range(1, _MAX_RUN_LINES + 1):
        run = [line.strip() for line in lines[start : start + period * MIN_LINE_REPEATS]]
        if len(run) < period * MIN_LINE_REPEATS:
            return 0
        expected = run[:period] * MIN_LINE_REPEATS
        at_end = start + len(run) == len(lines)
        last_fits = run[-1] == expected[-1] or (at_end and run[-1] != "" and expected[-1].startswith(run[-1]))
        if last_fits and run[:-1] == expected[:-1] and any(_has_words(line) for line in run[:period]):
            return period
    return 0


def _phrase_end(line: str, repeats: int = 1) -> int | None:
    """Return the first end of a phrase that repeats up to the line's end, None if there is none.

    Args:
        line: A line, complete or not.
        repeats: Minimum number of whole phrases. One more can be incomplete; of the second one, a character is enough.
    """
    first, backwards = len(line), line[::-1]
    for length in range(_MIN_PHRASE, min(_MAX_PHRASE, len(line) // repeats) + 1):
        start = len(line) - common_length(backwards, backwards[length:])
        if not _has_words(line[start - length : start]):
            continue
        # Phrases that end further on are these again.
        ends = range(start, min(first, len(line) - (repeats - 1) * length + 1, start + length))
        first = next((end for end in ends if _may_begin(line[end - length : end])), first)
    return first if first < len(line) else None


def _may_begin(phrase: str) -> bool:
    """Return whether a loop may begin with this phrase: it splits no word unless all of it is one word."""
    splits_word = _WORD.fullmatch(phrase[-1] + phrase[0]) and not _WORD.fullmatch(phrase)
    return not phrase[0].isspace() and not splits_word


def _has_words(text: str) -> bool:
    return sum(character.isalnum() for character in text) >= 3
