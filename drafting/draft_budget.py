"""Budget of drafted tokens that pay for themselves on this machine: step costs, and where to cut a tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from drafting.arrays import FloatArray, IntArray
from drafting.compiled import compiled, compiled_within

MIN_GAIN = 1.03
"""Minimum goodput of a tree relative to a step without guesses; above 1, since drafting itself takes time."""

SCALE_RATE = 0.2
"""Weight of one observed step in the estimate of the machine's current speed."""

SHAPE_RATE = 0.03
"""Weight of one observed step in the cost of its tree size relative to other sizes."""


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


class StepCosts:
    """C(N): milliseconds of a step that scores the anchor and N nodes. C never falls with N.

    Budgets depend on ratios of costs only, so a machine that is busy for a while changes none.

    Attributes:
        costs_ms: Cost by number of nodes; never changed in place.  # [max_nodes + 1]
    """

    def __init__(self, timings_ms: Mapping[int, float], max_nodes: int) -> None:
        """Interpolate timings at some tree sizes to all sizes.

        Args:
            timings_ms: Milliseconds by number of nodes; at least one size, all positive.
            max_nodes: Largest number of nodes that gets a cost.

        Raises:
            ValueError: There is no timing, or one is not positive or at a negative size.
        """
        if not timings_ms or min(timings_ms.values()) <= 0 or min(timings_ms) < 0:
            raise ValueError(f"step costs need timings above 0 ms at 0 nodes or more; got {dict(timings_ms)}")
        sizes = sorted(timings_ms)
        times = _non_decreasing([timings_ms[size] for size in sizes])
        self.costs_ms = _extended(sizes, times, max_nodes)
        self._scale = 1.0

    @classmethod
    def measure(cls, time_step: Callable[[int], float], sizes: Sequence[int], repeats: int) -> StepCosts:
        """Time real steps; each size keeps its fastest round, so that a burst of load spoils none.

        Args:
            time_step: Runs a step with this number of nodes below the anchor and returns its milliseconds.
            sizes: Numbers of nodes to time, 0 among them; the largest is the largest tree that may be proposed.
            repeats: Number of rounds over all sizes.
        """
        rounds = [[time_step(size) for size in sizes] for _ in range(repeats)]
        fastest = {size: min(times[i] for times in rounds) for i, size in enumerate(sizes)}
        return cls(fastest, max(sizes))

    @property
    def max_nodes(self) -> int:
        """Number of nodes of the largest tree that has a cost."""
        return len(self.costs_ms) - 1

    @property
    def latest_ms(self) -> FloatArray:
        """Cost by number of nodes at the machine's current speed.  # [max_nodes + 1]."""
        return (self.costs_ms * self._scale).astype(np.float32)

    def observe(self, nodes: int, step_ms: float) -> None:
        """Learn from a real step: the machine's speed quickly, the shape of C slowly."""
        if not 0 <= nodes <= self.max_nodes or step_ms <= 0:
            return
        surprise = step_ms / (self._scale * float(self.costs_ms[nodes]))
        surprise = min(max(surprise, 0.5), 2.0)  # a step that waited for something else has little weight
        self._scale *= surprise**SCALE_RATE
        self.costs_ms = _corrected(self.costs_ms, nodes, surprise)


@compiled
def best_cut(path_probabilities: FloatArray, best_first: IntArray, costs_ms: FloatArray) -> int:
    """Return how many nodes of a best-first list to keep: the number with the most expected tokens a millisecond.

    A step is expected to emit E(n) = 1 + Σ path probabilities tokens, since a node is accepted exactly if its whole
    path is. Taking n = argmax E(n) / C(n) adds a node while its probability exceeds (E/C)·ΔC, and also gets past a
    bump in C. Source: goodput, "Optimizing Speculative Decoding for Serving Large Language Models Using Goodput".

    Args:
        path_probabilities: Path probability of each candidate.
        best_first: The candidates in the order in which they would become nodes.  # [nodes]
        costs_ms: C(0) … C(nodes), or more.  # [≥ nodes + 1]
    """
    expected, cut, best_goodput = 1.0, 0, min_goodput(costs_ms)
    for node in range(min(len(best_first), len(costs_ms) - 1)):
        expected += path_probabilities[best_first[node]]
        if expected / costs_ms[node + 1] > best_goodput:
            cut, best_goodput = node + 1, expected / costs_ms[node + 1]
    return cut


@compiled_within
def min_goodput(costs_ms: FloatArray) -> float:
    """Return the expected tokens a millisecond above which a tree is proposed."""
    return float(MIN_GAIN / costs_ms[0])


@compiled_within
def may_pay(expected: float, likeliest: float, nodes: int, costs_ms: FloatArray, best_goodput: float) -> bool:
    """Return whether a tree can still grow into one with a higher goodput.

    Args:
        expected: E of the tree so far.
        likeliest: Upper bound on the path probability of further nodes.
        nodes: Number of nodes so far.
        costs_ms: C(0) … C(largest tree).
        best_goodput: The goodput to exceed.
    """
    for more in range(1, len(costs_ms) - nodes):
        if (expected + more * likeliest) / costs_ms[nodes + more] > best_goodput:
            return True
    return False


@compiled
def _corrected(costs_ms: FloatArray, nodes: int, surprise: float) -> FloatArray:
    """Return costs moved a little towards an observed step around its size; never falling.  # [max_nodes + 1]."""
    corrected = np.empty_like(costs_ms)
    highest = np.float32(0.0)
    for size in range(len(costs_ms)):
        near = np.exp(-0.5 * ((size - nodes) / (1 + 0.25 * nodes)) ** 2)
        highest = max(highest, np.float32(costs_ms[size] * surprise ** (SHAPE_RATE * near)))
        corrected[size] = highest
    return corrected


def _non_decreasing(times: Sequence[float]) -> list[float]:
    """Return the nearest non-decreasing sequence: neighbours in the wrong order get their mean."""
    pools: list[tuple[float, int]] = []
    for time in times:
        total, count = time, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before, members = pools.pop()
            total, count = total + before, count + members
        pools.append((total, count))
    return [total / count for total, count in pools for _ in range(count)]


def _extended(sizes: Sequence[int], times: Sequence[float], max_nodes: int) -> FloatArray:
    """Return costs at all sizes: linear between the timings, and past the last one with the last slope."""
    wanted = np.arange(max_nodes + 1)
    costs = np.interp(wanted, sizes, times)
    if len(sizes) > 1:
        slope = (times[-1] - times[-2]) / (sizes[-1] - sizes[-2])
        costs += slope * np.maximum(wanted - sizes[-1], 0)
    return costs.astype(np.float32)
