"""The candidates of a tree of guesses, and what is made of them: rows to score, and lessons for the odds."""

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
"""Sources that look up tokens: PROMPT, WORKSPACE, PATTERN."""

FANOUT = LOOKUPS * RANKS + 2 * WIDTH
"""Most candidates after one node."""

NOT_TAKEN = -1


class Pool(NamedTuple):
    """Candidates of a tree that grows, and the nodes taken from them. One is reused for all steps of a session.

    Attributes:
        size: Candidates, nodes.  # [2]
        tokens: Guessed token of each candidate.  # [room]
        parents: Node that it follows, −1 for the context's end.  # [room]
        nodes: Node that it became, or NOT_TAKEN.  # [room]
        sources: Who takes the credit.  # [room]
        kinds: Evidence of each source for it, −1 where not asked.  # [room, SOURCES]
        weight_sets: Which weights mix the evidence.  # [room]
        chances: Given that its parent is right.  # [room]
        paths: Chance that its whole path is right.  # [room]
        picked: Candidate of each node, in best-first order.  # [max nodes]
        tails: Last tokens up to and including each node, the context's own in row 0.  # [max nodes + 1, MAX_MATCH]
        found: Occurrences found by each lookup for the node that is looked at.  # [LOOKUPS]
        recycled: The pair's row and the token's row for it, −1 for none.  # [2]
        lookups: What each lookup found for it.
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
    """Memory for a tree of so many nodes."""
    room = (max_nodes + 1) * FANOUT

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
    """Follow the written tokens through the candidates, guessed or not, as far as they were looked at.

    All candidates after a node were right or wrong.

    Args:
        pool: Of the proposal.
        calibration: Learns.
        written: What the model wrote behind the context.  # [≥ 1]
        first: Nothing is learned from the tokens before this one: a constraint chose them.
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
def lay_out(pool: Pool, count: int) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
    """The first `count` nodes as scored rows: the likeliest path first and contiguous, then best first.

    Keys of other branches between a path's own would change the order of a floating-point sum, and so its result.

    Returns:
        Tokens, parents (−1 for the context's end), chances and sources of the rows.  # [count] each
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
    chances, sources = np.empty(count, dtype=np.float32), np.empty(count, dtype=np.int32)
    for node in range(count):
        candidate, row = pool.picked[node], row_of[node]
        parent = pool.parents[candidate]
        tokens[row], chances[row] = pool.tokens[candidate], pool.chances[candidate]
        parents[row] = row_of[parent] if parent >= 0 else -1
        sources[row] = pool.sources[candidate]
    return tokens, parents, chances, sources
