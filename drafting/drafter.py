"""Protocol of a drafter, which follows one request's tokens and guesses the next ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from drafting.arrays import IntArray
from drafting.draft_tree import DraftTree
from drafting.verifier import AcceptedPath


@dataclass(frozen=True, slots=True)
class SharedStep:
    """Other attempts that a step scores together with this one, and that share its cost.

    Attributes:
        rows: Number of rows of the other attempts.
        attempts: Number of other attempts.
    """

    rows: int = 0
    attempts: int = 0


ALONE = SharedStep()
"""A step that scores one attempt only."""


class Drafter(Protocol):
    """Guesses continuations of one request's tokens. A wrong guess costs time, never correctness."""

    def propose(
        self, context: Sequence[int], allowed: Callable[[int], bool] | None = None, shared: SharedStep = ALONE
    ) -> DraftTree:
        """Guess what follows the context, as a tree whose likeliest path comes first.

        Args:
            context: The prompt, the tokens of all paths observed so far, and further tokens that are certain to follow.
            allowed: Returns whether a token may come next (healing); None if every token may.
            shared: What else the step scores.
        """

    def observe(self, tree: DraftTree, best: IntArray, path: AcceptedPath, step_ms: float) -> None:
        """Learn from a verified step. The path's tokens are now the end of the context.

        Args:
            tree: The scored tree: certain tokens, then the proposal's nodes that the constraints allow.
            best: The model's best successors of the anchor and of each node, best first.  # [1 + nodes, ≥ 1]
            path: The accepted path.
            step_ms: Duration of the step; 0 if it scored anything besides the tree.
        """
