"""From accepted drafts to speed: what a text takes with a drafter, from the costs of steps that were measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from drafting.arrays import FloatArray

CHAIN = 5
"""Maximum length of a chain of drafts."""
THRESHOLDS = (0.0, 0.3, 0.5, 0.7, 0.9)
"""Probabilities of the drafter's own token under which it stops."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs of steps in milliseconds, measured in one run.

    Attributes:
        full_ms: Step of the full model by its rows.
        draft_ms: Step of the drafter.
    """

    full_ms: Mapping[int, float]
    draft_ms: float = 0.0

    def full(self, rows: int) -> float:
        """Return the cost of a step of the full model; between two numbers of rows it is interpolated."""
        return float(np.interp(rows, list(self.full_ms), list(self.full_ms.values())))


@dataclass(frozen=True, slots=True)
class Trees:
    """What the existing drafters proposed for a text.

    Attributes:
        nodes: Nodes of the tree at each token.
        accepted: Those that were accepted.
        share: Time of drafting a step over that of a step without drafts, of the same text.
    """

    nodes: Sequence[int]
    accepted: Sequence[int]
    share: float

    @classmethod
    def of_steps(cls, steps: Sequence[tuple[int, int]], share: float) -> Trees:
        """Return the trees from the nodes and written tokens of each step.

        Within what a step has written, its tree counts with what is left of it.
        """
        nodes, accepted = list[int](), list[int]()
        for count, written in steps:
            nodes += [max(count - index, 0) for index in range(written)]
            accepted += [written - 1 - index for index in range(written)]
        return cls(nodes, accepted, share)


@dataclass(frozen=True, slots=True)
class Drafted:
    """What a drafter said to a text of the full model.

    Attributes:
        agrees: Whether each token of a chain that starts at each token of the text is right.  # [tokens, CHAIN]
        confidence: Probability that the drafter gives its own token there.  # [tokens, CHAIN]
        first: First token that counts: those before it were typed by the user.
        trees: What the existing drafters proposed.
    """

    agrees: npt.NDArray[np.bool_]
    confidence: FloatArray
    first: int
    trees: Trees

    @property
    def runs(self) -> list[int]:
        """Number of right tokens of a chain before its first wrong one, by the text's tokens."""
        right: list[int] = np.cumprod(self.agrees, axis=1).sum(axis=1).tolist()
        return right


def accepted_share(texts: Sequence[Drafted], length: int) -> float:
    """Return the share of the tokens of chains that the full model accepts."""
    runs = [min(run, length) for text in texts for run in text.runs[text.first :]]
    return sum(runs) / max(length * len(runs), 1)


def plain_ms(text: Drafted, costs: Costs) -> float:
    """Return what a text takes without drafts."""
    return (len(text.agrees) - text.first) * costs.full(1)


def trees_ms(text: Drafted, costs: Costs) -> float:
    """Return what a text takes with the existing drafters."""
    at, total = text.first, 0.0
    while at < len(text.agrees):
        total += costs.full(1 + text.trees.nodes[at]) + text.trees.share * costs.full(1)
        at += 1 + text.trees.accepted[at]
    return total


def chains_ms(text: Drafted, costs: Costs, length: int, threshold: float, *, with_trees: bool = False) -> float:
    """Return what a text takes with chains of a drafter.

    Args:
        text: The text.
        costs: Costs of steps.
        length: Maximum length of a chain.
        threshold: Probability under which a chain ends; the token that is less likely was computed and is not used.
        with_trees: Whether the existing drafters draft as well, and chains serve only where they propose nothing.
    """
    at, total = text.first, 0.0
    while at < len(text.agrees):
        if with_trees:
            total += text.trees.share * costs.full(1)
        if with_trees and text.trees.nodes[at]:
            total += costs.full(1 + text.trees.nodes[at])
            at += 1 + text.trees.accepted[at]
            continue
        sure = text.confidence[at, :length] >= threshold
        used = length if sure.all() else int(np.argmin(sure))
        computed = min(used + 1, length)
        total += computed * costs.draft_ms + costs.full(1 + used)
        at += 1 + min(text.runs[at], used)
    return total


def least_ms(text: Drafted, costs: Costs, *, with_chains: bool = True, with_trees: bool = False) -> float:
    """Return what a text takes if each chain ends before its first wrong token, and each step drafts what is quickest.

    No rule that ends chains or chooses between drafters can be quicker.
    """
    count, runs = len(text.agrees), text.runs if with_chains else [0] * len(text.agrees)
    rest = [0.0] * (count + 1)
    for at in range(count - 1, text.first - 1, -1):
        options = [
            used * costs.draft_ms + costs.full(1 + used) + rest[min(at + used + 1, count)]
            for used in range(runs[at] + 1)
        ]
        if with_trees:
            after = min(at + text.trees.accepted[at] + 1, count)
            options.append(costs.full(1 + text.trees.nodes[at]) + text.trees.share * costs.full(1) + rest[after])
        rest[at] = min(options)
    return rest[text.first]


def best_chain(texts: Sequence[Drafted], costs: Costs, *, with_trees: bool = False) -> tuple[int, float]:
    """Return the length and the threshold of chains with which texts take the least time."""
    ways = [(length, threshold) for length in range(1, CHAIN + 1) for threshold in THRESHOLDS]
    return min(ways, key=lambda way: sum(chains_ms(text, costs, *way, with_trees=with_trees) for text in texts))
