"""A text that goes round in circles is cut at the first repeat."""

from __future__ import annotations

import re
from dataclasses import replace

from completion.postprocess.context import Context
from completion.request import Suggestion
from completion.syntax.changed_span import common_length

LINE_LOOP = 3
"""So many equal runs of lines in a row are a loop."""
PHRASE_LOOP = 4
"""So many equal phrases in a row within a line are a loop."""

_MOST_LINES = 8
_SHORTEST_PHRASE = 4
_LONGEST_PHRASE = 60
_PHRASE = re.compile(rf"(?=(\S.{{{_SHORTEST_PHRASE - 1},{_LONGEST_PHRASE - 1}}}?)\1{{{PHRASE_LOOP - 1}}})")


def loops(suggestion: Suggestion, context: Context) -> Suggestion:  # noqa: ARG001  (a filter's signature)
    """Cut the text behind the first round of a loop of lines, or of a phrase within a line."""
    text = suggestion.text
    lines = text.split("\n")
    offset = 0
    for index, line in enumerate(lines):
        phrase = _phrase_end(line)
        if phrase is not None:
            return replace(suggestion, text=text[: offset + phrase])
        offset += len(line) + 1
        period = _period(lines, index)
        if period:
            return replace(suggestion, text="\n".join(lines[: index + period]))
    return suggestion


def stable_length(text: str, _context: Context) -> int:
    """Length of the part of an unfinished text that no loop, however it goes on, can cut."""
    lines = text.split("\n")
    return min(_unlooped_lines(lines), len(text) - len(lines[-1]) + _unlooped_phrase(lines[-1]))


def _unlooped_lines(lines: list[str]) -> int:
    first = len(lines)
    for period in range(1, _MOST_LINES + 1):
        index = len(lines)
        while index > period and _repeats(lines, index - 1, period):
            index -= 1
        first = min(first, index)
    return len("\n".join(lines[:first]))


def _repeats(lines: list[str], index: int, period: int) -> bool:
    line, before = lines[index].strip(), lines[index - period].strip()
    return before.startswith(line) if index == len(lines) - 1 else line == before


def _unlooped_phrase(line: str) -> int:
    first, backwards = len(line), line[::-1]
    for length in range(_SHORTEST_PHRASE, min(_LONGEST_PHRASE, len(line) - 1) + 1):
        first = min(first, len(line) - common_length(backwards, backwards[length:]))
    return first


def _period(lines: list[str], start: int) -> int:
    """Length of the run of lines that begins at `start` and comes LINE_LOOP times in a row; 0 if none does.

    The last of them may be cut short in its last line.
    """
    for period in range(1, _MOST_LINES + 1):
        run = [line.strip() for line in lines[start : start + period * LINE_LOOP]]
        if len(run) < period * LINE_LOOP:
            return 0
        expected = run[:period] * LINE_LOOP
        at_end = start + len(run) == len(lines)
        last_fits = run[-1] == expected[-1] or (at_end and run[-1] != "" and expected[-1].startswith(run[-1]))
        if last_fits and run[:-1] == expected[:-1] and any(_says_something(line) for line in run[:period]):
            return period
    return 0


def _says_something(line: str) -> bool:
    return sum(character.isalnum() for character in line) >= 3


def _phrase_end(line: str) -> int | None:
    """Offset behind the first round of a phrase that comes PHRASE_LOOP times in a row."""
    for match in _PHRASE.finditer(line):
        if _says_something(match.group(1)):
            return match.end(1)
    return None
