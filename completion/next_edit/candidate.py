"""A candidate for the next edit: a change of whole lines, with what proposed it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from completion.next_edit.rewrites import RewriteKind, is_word, tokenise

REPORTED = "reported"
"""Kind of a candidate that takes away a word which a diagnostic of its line names."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A change of whole lines.

    Attributes:
        line: First line that it replaces, from 0.
        old: Lines that it replaces; never empty.
        kinds: What proposed it: kinds of rewrites, "analogy", "combined", `REPORTED`.
        edit: Index of the newest edit that taught it.
        column: Column of the first changed text.
        taught_at: Line and column, in the document now, of the edit that taught it.
        occurrences: Number of places of the document that the same rule matches.
        pattern: Number of tokens of the rule's old side.
        votes: Number of edits that teach the same.
    """

    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    kinds: frozenset[str]
    edit: int
    column: int = 0
    taught_at: tuple[int, int] = (0, 0)
    occurrences: int = 1
    pattern: int = 0
    votes: int = 1

    @property
    def end(self) -> int:
        """Line after the last one that it replaces."""
        return self.line + len(self.old)

    @property
    def is_part(self) -> bool:
        """Whether it is a part of what an edit teaches: right only if its name has lost its definition."""
        return self.kinds == {RewriteKind.PART}

    @property
    def names(self) -> frozenset[str]:
        """Words that it takes away."""
        return frozenset(filter(is_word, tokens_of(self.old) - tokens_of(self.new)))


def words(lines: Sequence[str]) -> frozenset[str]:
    """Return the words of some lines."""
    return frozenset(filter(is_word, tokens_of(lines)))


def tokens_of(lines: Sequence[str]) -> Counter[str]:
    """Return how often each token is in some lines."""
    return Counter(token[0] for line in lines for token in tokenise(line))
