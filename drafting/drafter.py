"""The Protocol of a drafter: it watches tokens go by and guesses which come next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from drafting.draft_tree import DraftTree


class Drafter(Protocol):
    """Guesses continuations of a token sequence. A wrong guess costs time, never correctness.

    Attributes:
        name: Short and stable; statistics count accepted tokens by it.
    """

    name: str

    def observe(self, tokens: Sequence[int]) -> None:
        """Learn from tokens that now stand in the context, in order, each call continuing the last."""

    def propose(self, context: Sequence[int], budget: int) -> DraftTree:
        """Guess what follows `context`, as a tree of at most `budget` nodes."""
