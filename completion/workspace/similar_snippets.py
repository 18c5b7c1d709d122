"""Finds runs of lines in other files that share words with the code around the cursor."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

SNIPPET_LINES = 16
"""Number of lines in a snippet; adjacent snippets overlap by half."""
MIN_SIMILARITY = 0.12
"""Minimum Jaccard similarity of a snippet; snippets below share little but keywords."""

_WORD = re.compile(r"[A-Za-z_]\w{2,}")


@dataclass(frozen=True, slots=True)
class Snippet:
    """A run of a file's lines and its words, which are a tuple because garbage collections skip tuples of strings.

    Attributes:
        line: First of its lines, from 0.
    """

    path: str
    line: int
    words: tuple[str, ...]

    def text_in(self, text: str) -> str:
        """Return its lines in the text of its file."""
        return _lines_from(text.splitlines(), self.line)


def words_of(text: str) -> frozenset[str]:
    """Return the words of three letters or more; `camelCase` and `snake_case` words stay whole."""
    return frozenset(_WORD.findall(text))


def snippets_of(path: str, text: str) -> tuple[Snippet, ...]:
    """Return a file's overlapping runs of lines."""
    lines = text.splitlines()
    step = SNIPPET_LINES // 2
    starts = range(0, max(1, len(lines) - step), step)
    texts = ((start, _lines_from(lines, start)) for start in starts)
    known: dict[str, str] = {}  # a word is one object in all snippets of the file
    return tuple(
        Snippet(path, start, tuple(known.setdefault(word, word) for word in words_of(piece)))
        for start, piece in texts
        if piece.strip()
    )


def _lines_from(lines: list[str], start: int) -> str:
    return "\n".join(lines[start : start + SNIPPET_LINES])


def most_similar(near: frozenset[str], snippets: Iterable[Snippet], count: int) -> list[Snippet]:
    """Return the snippets most similar to the words near the cursor (Jaccard), best first, at most one of a file."""
    scored = []
    for snippet in snippets:
        shared = len(near.intersection(snippet.words))
        union = len(near) + len(snippet.words) - shared
        similarity = shared / union if union else 0.0
        if similarity >= MIN_SIMILARITY:
            scored.append((-similarity, snippet.path, snippet.line, snippet))
    chosen: dict[str, Snippet] = {}
    for *_, snippet in sorted(scored, key=lambda row: row[:3]):
        chosen.setdefault(snippet.path, snippet)
        if len(chosen) == count:
            break
    return list(chosen.values())
