"""Tree of guessed tokens: parents, depths, and who guessed each node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from drafting.arrays import IntArray

ROOT = -1
"""Parent of a node that directly follows the context."""


def depths_of(parents: IntArray) -> IntArray:
    """Return the depth of each node, 0 for a root.  # [rows].

    Raises:
        ValueError: A parent does not come before its child.
    """
    depths = np.zeros(len(parents), dtype=np.int32)
    for node, parent in enumerate(parents.tolist()):
        if not -1 <= parent < node:
            raise ValueError(f"Row {node} has parent {parent}; a parent must be −1 or come before its child.")
        if parent >= 0:
            depths[node] = depths[parent] + 1
    return depths


@dataclass(frozen=True, slots=True)
class DraftTree:
    """Guessed continuations that share their beginnings.

    Attributes:
        tokens: Token id of each node.  # [nodes]
        parents: Index of each node's parent, ROOT for a first token; a parent comes before its children.  # [nodes]
        drafters: Index into `names` of who guessed the node.  # [nodes]
        names: Names of the drafters that contributed.
        depths: Depth of each node, 1 for a node that follows the context.  # [nodes]
    """

    tokens: IntArray
    parents: IntArray
    drafters: IntArray
    names: tuple[str, ...] = ()
    depths: IntArray = field(init=False)

    def __post_init__(self) -> None:
        if not len(self.tokens) == len(self.parents) == len(self.drafters):
            raise ValueError("tokens, parents and drafters must have the same length")
        object.__setattr__(self, "depths", depths_of(self.parents) + np.int32(1))

    def __len__(self) -> int:
        """Number of nodes."""
        return len(self.tokens)

    @classmethod
    def empty(cls) -> DraftTree:
        """Return a tree without nodes."""
        nothing = np.empty(0, dtype=np.int32)
        return cls(nothing, nothing, nothing)

    def child(self, parent: int, token: int) -> int | None:
        """Return the first child of `parent` (or of ROOT) that has this token, None if there is none."""
        found = np.flatnonzero((self.parents == parent) & (self.tokens == token))
        return int(found[0]) if len(found) else None

    def subtree(self, nodes: Sequence[int]) -> DraftTree:
        """Return the tree of these nodes only.

        Args:
            nodes: Nodes in their new order; each one's parent is among them and comes before it.
        """
        index_of = {ROOT: ROOT} | {node: row for row, node in enumerate(nodes)}
        kept = np.asarray(nodes, dtype=np.int32)
        parents = np.asarray([index_of[int(self.parents[node])] for node in nodes], dtype=np.int32)
        return DraftTree(self.tokens[kept], parents, self.drafters[kept], self.names)

    def after(self, tokens: Sequence[int], name: str) -> DraftTree:
        """Return this tree below a chain of `tokens` that are certain to come, credited to `name`."""
        count = len(tokens)
        chain = np.arange(-1, count - 1, dtype=np.int32)
        return DraftTree(
            np.concatenate((np.asarray(tokens, dtype=np.int32), self.tokens)),
            np.concatenate((chain, self.parents + count)).astype(np.int32),
            np.concatenate((np.full(count, len(self.names), dtype=np.int32), self.drafters)),
            (*self.names, name),
        )
