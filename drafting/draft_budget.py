"""How many guessed tokens pay for themselves on this machine: step costs, and where to cut a tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from drafting.arrays import FloatArray
from drafting.compiled import compiled

MIN_GAIN = 1.03
"""A tree must promise this much more text a millisecond than no tree: guessing itself takes time as well."""

SCALE_RATE = 0.2
"""How fast the machine's momentary speed is followed."""

SHAPE_RATE = 0.03
"""How fast one size's cost, relative to the others, is corrected by what steps really take."""


class StepCosts:
    """C(N): milliseconds of a step that scores the anchor and N guessed nodes, never falling with N.

    Only ratios decide anything, so a machine that is busy for a while changes no budget.
    """

    def __init__(self, timings_ms: Mapping[int, float], max_nodes: int) -> None:
        """Interpolate timings at some sizes to all sizes.

        Args:
            timings_ms: Milliseconds by number of nodes; at least one size, all positive.
            max_nodes: The largest N that will be asked for.
        """
        if not timings_ms or min(timings_ms.values()) <= 0 or min(timings_ms) < 0:
            raise ValueError(f"step costs need positive times at sizes of 0 nodes or more, not {dict(timings_ms)}")
        sizes = sorted(timings_ms)
        times = _never_falling([timings_ms[size] for size in sizes])
        self._costs_ms = _extended(sizes, times, max_nodes)
        self._scale = 1.0

    @classmethod
    def measure(cls, time_step: Callable[[int], float], sizes: Sequence[int], repeats: int = 5) -> StepCosts:
        """Time real steps: the fastest of `repeats` rounds over all sizes, so that a burst of load spoils no size.

        Args:
            time_step: Runs a step with so many nodes below the anchor and returns its milliseconds.
            sizes: Node counts to time, 0 among them; the largest is the largest tree ever proposed.
            repeats: Rounds.
        """
        rounds = [[time_step(size) for size in sizes] for _ in range(repeats)]
        fastest = {size: min(times[i] for times in rounds) for i, size in enumerate(sizes)}
        return cls(fastest, max(sizes))

    @property
    def max_nodes(self) -> int:
        """The largest tree that has a cost."""
        return len(self._costs_ms) - 1

    @property
    def costs_ms(self) -> FloatArray:
        """Cost by number of nodes; never changed in place.  # [max_nodes + 1]."""
        return self._costs_ms

    def observe(self, nodes: int, step_ms: float) -> None:
        """Learn from a real step: the machine's speed fast, the shape of C slowly."""
        if not 0 <= nodes <= self.max_nodes or step_ms <= 0:
            return
        surprise = step_ms / (self._scale * float(self._costs_ms[nodes]))
        surprise = min(max(surprise, 0.5), 2.0)  # a step that waited for something else teaches little
        self._scale *= surprise**SCALE_RATE
        self._costs_ms = _corrected(self._costs_ms, nodes, surprise)


@compiled
def best_cut(path_probabilities: FloatArray, costs_ms: FloatArray) -> int:
    """How many nodes of a best-first list to keep: those that bring the most expected tokens a millisecond.

    The expected tokens of a step are E(n) = 1 + Σ path probabilities (a node is accepted exactly if its whole path
    is). Taking n = argmax E(n) / C(n) adds a node while its probability exceeds (E/C)·ΔC, and also sees past a
    bump in C. Source: goodput, "Optimizing Speculative Decoding for Serving Large Language Models Using Goodput".

    Args:
        path_probabilities: Of nodes in the order in which they would be added.  # [nodes]
        costs_ms: C(0) … C(nodes), or more.  # [≥ nodes + 1]
    """
    expected, cut, record = 1.0, 0, least_goodput(costs_ms)
    for node in range(min(len(path_probabilities), len(costs_ms) - 1)):
        expected += path_probabilities[node]
        if expected / costs_ms[node + 1] > record:
            cut, record = node + 1, expected / costs_ms[node + 1]
    return cut


@compiled
def least_goodput(costs_ms: FloatArray) -> float:
    """Expected tokens a millisecond that a tree must promise to be worth proposing."""
    return float(MIN_GAIN / costs_ms[0])


@compiled
def may_pay(expected: float, likeliest: float, nodes: int, costs_ms: FloatArray, record: float) -> bool:
    """Whether a tree of `nodes` nodes can still grow into one with a higher goodput.

    Args:
        expected: E of the tree so far.
        likeliest: No further node is likelier than this.
        nodes: Nodes so far.
        costs_ms: C(0) … C(largest tree).
        record: The goodput to beat.
    """
    for more in range(1, len(costs_ms) - nodes):
        if (expected + more * likeliest) / costs_ms[nodes + more] > record:
            return True
    return False


@compiled
def _corrected(costs_ms: FloatArray, nodes: int, surprise: float) -> FloatArray:
    """Costs near one size, moved a little towards what a step took; they still never fall.  # [max_nodes + 1]."""
    corrected = np.empty_like(costs_ms)
    highest = np.float32(0.0)
    for size in range(len(costs_ms)):
        near = np.exp(-0.5 * ((size - nodes) / (1 + 0.25 * nodes)) ** 2)
        highest = max(highest, np.float32(costs_ms[size] * surprise ** (SHAPE_RATE * near)))
        corrected[size] = highest
    return corrected


def _never_falling(times: Sequence[float]) -> list[float]:
    """The nearest sequence that does not fall: neighbours in the wrong order share their mean."""
    pools: list[tuple[float, int]] = []
    for time in times:
        total, count = time, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before, members = pools.pop()
            total, count = total + before, count + members
        pools.append((total, count))
    return [total / count for total, count in pools for _ in range(count)]


def _extended(sizes: Sequence[int], times: Sequence[float], max_nodes: int) -> FloatArray:
    """Piecewise linear between the sizes, and beyond the last one as steep as before it."""
    wanted = np.arange(max_nodes + 1)
    costs = np.interp(wanted, sizes, times)
    if len(sizes) > 1:
        slope = (times[-1] - times[-2]) / (sizes[-1] - sizes[-2])
        costs += slope * np.maximum(wanted - sizes[-1], 0)
    return costs.astype(np.float32)
