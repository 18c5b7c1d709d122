"""The tokens of a text and how much each tells: what is rare in a document hardly stands in a text twice by chance."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache
from typing import NamedTuple

_TOKEN = re.compile(r"\w+|[^\w\s]")
_NEAR = 8_000  # characters on each side of the cursor whose tokens are counted
_PRIOR = 64  # tokens of any spelling that each document is taken to have
_BITS = 5  # of a character of these
_MOST_BITS = 200  # of one of these


class Token(NamedTuple):
    """A word or mark in the form that is compared, and its offsets. The kind of quotes does not count."""

    text: str
    start: int
    end: int


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
    """Return the words and marks of a text in any script; blanks are none."""
    return [Token(found[0].replace("'", '"'), found.start(), found.end()) for found in _TOKEN.finditer(text)]


@lru_cache(maxsize=64)  # most lines of a text that grows stay the same
def folded(line: str) -> tuple[str, ...]:
    """Return the tokens of a line, without a comma or semicolon at its end. Their case does not count either."""
    tokens = _TOKEN.findall(line.replace("'", '"').lower())
    while tokens and tokens[-1] in (",", ";"):
        tokens.pop()
    return tuple(tokens)


@lru_cache(maxsize=2)  # the text around the cursor stays the same while a suggestion grows
def bits_of(prefix: str, suffix: str) -> Bits:
    """Return how much the tokens of a document tell near the cursor."""
    return Bits(f"{prefix[-_NEAR:]} {suffix[:_NEAR]}")
