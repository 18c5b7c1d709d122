"""Finds heredocs: the lines of text between a line with `<<END` and a line with `END`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_SHELL = re.compile(r"^(?:(?!\(\().)*?(?<![<(])<<-?[ \t]*\\?([\"']?)(?P<end>[A-Za-z_]\w*)\1")  # `((a << b))` is none
_UPPER_CASE = re.compile(r"(?:<<[-~]?|<<<)([\"'`]?)(?P<end>[A-Z_]\w*)\1")
_BEGINS = {
    **dict.fromkeys(["shellscript", "dockerfile"], _SHELL),
    **dict.fromkeys(["ruby", "crystal", "perl", "php", "terraform"], _UPPER_CASE),
}
"""By language, what begins a heredoc; in Ruby, `a << b` adds to a list."""
_QUOTES = str.maketrans("\"'`#", "    ")


def without_heredocs(text: str, language: str) -> tuple[str, bool]:
    """Return a text without the lines of its heredocs, and whether it ends within one."""
    if language not in _BEGINS or "<<" not in text:
        return text, False
    lines = text.split("\n")
    kept, done = list[str](), 0
    for start, end in _bodies(lines, language):
        kept += lines[done:start]
        done = end + 1
    return "\n".join([*kept, *lines[done:]]), done > len(lines)


def without_quotes_in_heredocs(text: str, language: str) -> str:
    """Return a text of the same length in which heredocs begin no strings and comments, and whole ones no brackets.

    In one that the text ends inside, the user may write code of another language, where brackets are in pairs.
    """
    if language not in _BEGINS or "<<" not in text:
        return text
    lines = text.split("\n")
    for start, end in _bodies(lines, language):
        is_whole = end < len(lines)
        lines[start:end] = [" " * len(line) if is_whole else line.translate(_QUOTES) for line in lines[start:end]]
    return "\n".join(lines)


def _bodies(lines: Sequence[str], language: str) -> Iterator[tuple[int, int]]:
    """Yield the index of each heredoc's first line and of the line that ends it; the number of lines if none does."""
    begins, start, end = _BEGINS.get(language), 0, ""
    for index, line in enumerate(lines if begins else ()):
        if end:
            if line.strip().rstrip(";,)") == end:
                yield start, index
                end = ""
        elif "<<" in line and begins is not None and (found := begins.search(line)):
            start, end = index + 1, found["end"]
    if end:
        yield start, len(lines)
