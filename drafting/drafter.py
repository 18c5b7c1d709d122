"""The Protocol of a drafter: it watches one request's tokens go by and guesses which come next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from drafting.arrays import IntArray
from drafting.draft_tree import DraftTree
from drafting.verifier import AcceptedPath


@dataclass(frozen=True, slots=True)
class Beside:
    """What a step scores beside one text: other texts that pay for the step as well.

    Attributes:
        rows: Their rows.
        texts: How many they are.
    """

    rows: int = 0
    texts: int = 0


ALONE = Beside()


class Drafter(Protocol):
    """Guesses continuations of one request's tokens. A wrong guess costs time, never correctness."""

    def propose(
        self, context: Sequence[int], allowed: Callable[[int], bool] | None = None, beside: Beside = ALONE
    ) -> DraftTree:
        """Guess what follows the context, as a tree whose likeliest path comes first.

        Args:
            context: The prompt, all tokens of the paths observed so far, and further ones that are sure to follow.
            allowed: Says which tokens may come next at all (healing); None where any may.
            beside: What else the step scores.
        """

    def observe(self, tree: DraftTree, best: IntArray, path: AcceptedPath, step_ms: float) -> None:
        """Learn from a verified step; the path's tokens now stand at the context's end.

        Args:
            tree: What was scored: sure tokens, and what constraints left of the proposed tree.
            best: The model's best successors of the anchor and of each node, best first.  # [1 + nodes, ≥ 1]
            path: What was accepted of it, and the model's own token.
            step_ms: How long the step took.
        """
