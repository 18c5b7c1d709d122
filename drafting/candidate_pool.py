"""Candidates of a growing draft tree: their memory, what is learned from them, and their order as scored rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from drafting.arrays import FloatArray, IntArray
from drafting.calibration import SOURCES, CalibrationArrays, learn
from drafting.compiled import compiled
from drafting.sources.ngram_index import MAX_MATCH
from drafting.sources.prompt_lookup import RANKS, Continuations, continuations_scratch
from drafting.sources.token_recycling import WIDTH

LOOKUPS = 3
"""Number of sources that search earlier tokens: PROMPT, WORKSPACE, PATTERN."""

MAX_FANOUT = LOOKUPS * RANKS + 2 * WIDTH
"""Maximum number of candidates after one node."""

NOT_TAKEN = -1
"""Entry of `Pool.nodes` for a candidate that did not become a node."""


class Pool(NamedTuple):
    """Candidates of a growing tree, and the nodes taken from them. A session reuses one pool for all its steps.

    Attributes:
        size: Number of candidates, number of nodes.  # [2]
        tokens: Guessed token of each candidate.  # [room]
        parents: Node that the candidate follows, −1 for the context's end.  # [room]
        nodes: Node that the candidate became, or NOT_TAKEN.  # [room]
        sources: Source with the strongest evidence, which gets the credit.  # [room]
        kinds: Kind of evidence of each source, −1 for a disabled source.  # [room, SOURCES]
        weight_sets: Index of the weights that mix the evidence.  # [room]
        chances: Probability of the candidate, given that its parent is right.  # [room]
        paths: Probability of the candidate's whole path.  # [room]
        picked: Candidate of each node, in best-first order.  # [max nodes]
        tails: Last tokens up to and including each node; row 0 is the context's.  # [max nodes + 1, MAX_MATCH]
        found: Occurrences that each lookup found for the node that is being expanded.  # [LOOKUPS]
        recycled: Row of that node's last pair of tokens and row of its last token, −1 for none.  # [2]
        lookups: Continuations that each lookup found for that node.
    """

    size: IntArray
    tokens: IntArray
    parents: IntArray
    nodes: IntArray
    sources: IntArray
    kinds: IntArray
    weight_sets: IntArray
    chances: FloatArray
    paths: FloatArray
    picked: IntArray
    tails: IntArray
    found: IntArray
    recycled: IntArray
    lookups: tuple[Continuations, Continuations, Continuations]


def empty_pool(max_nodes: int) -> Pool:
    """Return memory for trees of at most `max_nodes` nodes."""
    room = (max_nodes + 1) * MAX_FANOUT

    def column() -> IntArray:
        return np.zeros(room, dtype=np.int32)

    return Pool(
        size=np.zeros(2, dtype=np.int32),
        tokens=column(),
        parents=column(),
        nodes=column(),
        sources=column(),
        kinds=np.zeros((room, SOURCES), dtype=np.int32),
        weight_sets=column(),
        chances=np.zeros(room, dtype=np.float32),
        paths=np.zeros(room, dtype=np.float32),
        picked=np.zeros(max_nodes, dtype=np.int32),
        tails=np.full((max_nodes + 1, MAX_MATCH), -1, dtype=np.int32),
        found=np.zeros(LOOKUPS, dtype=np.int32),
        recycled=np.zeros(2, dtype=np.int32),
        lookups=(continuations_scratch(), continuations_scratch(), continuations_scratch()),
    )


@compiled
def learn_path(pool: Pool, calibration: CalibrationArrays, written: IntArray, first: int) -> None:
    """Learn from all candidates along the path of the written tokens, whether or not they became nodes.

    Every candidate after a node of the path is either right or wrong. The path ends where the written token is no node.

    Args:
        pool: Candidates of the proposal.
        calibration: Changed in place.
        written: Tokens that the model wrote after the context.  # [≥ 1]
        first: Index of the first token to learn from; a constraint chose the tokens before it.
    """
    node = -1
    for step in range(len(written)):
        following = -1
        for i in range(pool.size[0]):
            if pool.parents[i] != node:
                continue
            right = pool.tokens[i] == written[step]
            if step >= first:
                learn(calibration, pool.kinds[i], pool.weight_sets[i], 1.0 if right else 0.0)
            if right:
                following = pool.nodes[i]
        if following < 0:
            return
        node = following


@compiled
def lay_out(pool: Pool, count: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return the first `count` nodes in the order of scored rows: the likeliest path first, then the others best first.

    The likeliest path is contiguous. Rows of other branches between the rows of a path would change the order of a
    floating-point sum, and so its result.

    Returns:
        Tokens, parents (−1 for the context's end) and sources of the rows.  # [count] each
    """
    row_of = np.full(count, -1, dtype=np.int32)
    placed, last = 0, -1
    for node in range(count):  # best first, so the first child met is the likeliest
        if pool.parents[pool.picked[node]] == last:
            row_of[node] = placed
            placed, last = placed + 1, node
    for node in range(count):
        if row_of[node] < 0:
            row_of[node] = placed
            placed += 1
    tokens, parents = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.int32)
    sources = np.empty(count, dtype=np.int32)
    for node in range(count):
        candidate, row = pool.picked[node], row_of[node]
        parent = pool.parents[candidate]
        tokens[row], sources[row] = pool.tokens[candidate], pool.sources[candidate]
        parents[row] = row_of[parent] if parent >= 0 else -1
    return tokens, parents, sources
