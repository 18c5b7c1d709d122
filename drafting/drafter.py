"""The Protocol of a drafter: it watches one request's tokens go by and guesses which come next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from drafting.draft_tree import DraftTree
from drafting.verifier import AcceptedPath

IntArray = npt.NDArray[np.int32]


class Drafter(Protocol):
    """Guesses continuations of one request's tokens. A wrong guess costs time, never correctness."""

    def propose(self, max_nodes: int, allowed: Callable[[int], bool] | None = None) -> DraftTree:
        """Guess what follows the context, as a tree whose likeliest path comes first.

        Args:
            max_nodes: Most nodes wanted; fewer come where more would not pay.
            allowed: Says which tokens may come next at all (healing); None where any may.
        """

    def observe_step(self, tree: DraftTree, path: AcceptedPath, tops: IntArray | None = None) -> None:
        """Learn from a verified step; the path's tokens now stand at the context's end.

        Args:
            tree: What was scored: the proposed tree, or what constraints left of it.
            path: What was accepted of it, and the model's own token.
            tops: The model's best candidates after each scored row, best first.  # [1 + nodes, ≥ 1]
        """
