"""Runs of lines in other files that use the same words as the code around the cursor."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

SNIPPET_LINES = 16
"""Lines of a snippet; neighbours overlap by half."""
LEAST_SIMILARITY = 0.12
"""Snippets with a smaller Jaccard similarity are chance: they share keywords and little else."""

_WORD = re.compile(r"[A-Za-z_]\w{2,}")


@dataclass(frozen=True, slots=True)
class Snippet:
    """A run of lines with the words that it uses."""

    path: str
    line: int
    text: str
    words: frozenset[str]


def words_of(text: str) -> frozenset[str]:
    """Words of three letters and more; `camelCase` and `snake_case` stay whole."""
    return frozenset(_WORD.findall(text))


def snippets_of(path: str, text: str) -> tuple[Snippet, ...]:
    """Cut a file into overlapping runs of lines."""
    lines = text.splitlines()
    step = SNIPPET_LINES // 2
    starts = range(0, max(1, len(lines) - step), step)
    texts = ((start, "\n".join(lines[start : start + SNIPPET_LINES])) for start in starts)
    return tuple(Snippet(path, start, piece, words_of(piece)) for start, piece in texts if piece.strip())


def most_similar(near: frozenset[str], snippets: Iterable[Snippet], count: int) -> list[Snippet]:
    """The snippets most like the words near the cursor (Jaccard), best first, at most one of a file."""
    scored = []
    for snippet in snippets:
        shared = len(near & snippet.words)
        union = len(near) + len(snippet.words) - shared
        similarity = shared / union if union else 0.0
        if similarity >= LEAST_SIMILARITY:
            scored.append((-similarity, snippet.path, snippet.line, snippet))
    chosen: dict[str, Snippet] = {}
    for *_, snippet in sorted(scored, key=lambda row: row[:3]):
        chosen.setdefault(snippet.path, snippet)
        if len(chosen) == count:
            break
    return list(chosen.values())
