"""The tokens of a text and how much each tells: what is rare in a document hardly stands in a text twice by chance."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache

from completion.ending.context import Context

_TOKEN = re.compile(r"\w+|[^\w\s]")
_NEAR = 8_000  # characters on each side of the cursor whose tokens are counted
_PRIOR = 64  # tokens of any spelling that each document is taken to have
_BITS = 5  # of a character of these
_MOST_BITS = 200  # of one of these


Token = re.Match[str]
"""A word or mark."""


class Bits(dict[str, float]):
    """By token, minus the logarithm of its frequency in a document."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._counts = Counter(_TOKEN.findall(text.replace("'", '"')))
        self._total = self._counts.total() + _PRIOR

    def __missing__(self, token: str) -> float:
        share = (self._counts[token] + _PRIOR * 2.0 ** -min(_BITS * len(token), _MOST_BITS)) / self._total
        self[token] = bits = -math.log2(share)
        return bits


def tokens_of(text: str) -> list[Token]:
    """Return the words and marks of a text in any script; blanks are none. The kind of quotes does not count."""
    return list(_TOKEN.finditer(text.replace("'", '"')))


@lru_cache(maxsize=64)  # most lines of a text that grows stay the same
def folded(line: str) -> tuple[str, ...]:
    """Return the tokens of a line, without a comma or semicolon at its end. Their case does not count either."""
    tokens = _TOKEN.findall(line.replace("'", '"').lower())
    while tokens and tokens[-1] in (",", ";"):
        tokens.pop()
    return tuple(tokens)


@lru_cache(maxsize=2)
def bits_of(context: Context) -> Bits:
    """Return how much the tokens of a document tell near the cursor."""
    return Bits(f"{context.prefix[-_NEAR:]} {context.suffix[:_NEAR]}")
