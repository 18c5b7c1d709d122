"""One tree from several sources, grown best first by the probability of a node's whole path.

Sources: "OPT-Tree: Speculative Decoding with Adaptive Draft Tree Structure" (best-first growth under a budget);
"EAGLE-2: Faster Inference of Language Models with Dynamic Draft Trees" (path probabilities from calibrated odds).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from drafting.calibration import (
    MATCHES,
    PROMPT,
    RECYCLING,
    SOURCES,
    WORKSPACE,
    CalibrationArrays,
    learn,
    logit_of,
    probability,
)
from drafting.compiled import compiled
from drafting.ngram_index import MAX_MATCH, NgramArrays
from drafting.prompt_lookup import (
    RANKS,
    Continuations,
    continuations_scratch,
    evidence,
    length_class,
    rank_continuations,
)
from drafting.token_recycling import KINDS, WIDTH, RecyclingArrays, find_pair, rank_in

IntArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float32]

MIN_PATH_PROBABILITY = 0.02
"""A node less likely than this is worth no row on any machine."""

FANOUT = 2 * RANKS + 2 * WIDTH
"""Most candidates after one node."""

NOT_TAKEN = -1


class Sources(NamedTuple):
    """Where guesses come from, and which of the three are asked.  enabled: # [SOURCES]."""

    prompt: NgramArrays
    workspace: NgramArrays
    recycling: RecyclingArrays
    enabled: npt.NDArray[np.bool_]


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
    from_prompt: Continuations
    from_workspace: Continuations


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
        from_prompt=continuations_scratch(),
        from_workspace=continuations_scratch(),
    )


@compiled
def expand(pool: Pool, sources: Sources, calibration: CalibrationArrays, node: int, path: float) -> None:
    """Add what may follow a node (−1: the context) to the pool, each token once, with its chance."""
    tail = pool.tails[node + 1]
    in_prompt = rank_continuations(sources.prompt, tail, pool.from_prompt) if sources.enabled[PROMPT] else 0
    in_workspace = rank_continuations(sources.workspace, tail, pool.from_workspace) if sources.enabled[WORKSPACE] else 0
    row, single = -1, False
    if sources.enabled[RECYCLING] and 0 <= tail[-1] < len(sources.recycling.single):
        row = find_pair(sources.recycling, tail[-2], tail[-1]) if tail[-2] >= 0 else -1
        single = sources.recycling.single[tail[-1], 0] >= 0
    match_prompt = 1 + length_class(pool.from_prompt.longest[0]) if in_prompt > 0 else 0
    match_workspace = 1 + length_class(pool.from_workspace.longest[0]) if in_workspace > 0 else 0
    first = pool.size[0]
    for i in range(FANOUT):
        token = -1
        if i < RANKS:
            token = pool.from_prompt.tokens[i] if in_prompt > 0 else -1
        elif i < 2 * RANKS:
            token = pool.from_workspace.tokens[i - RANKS] if in_workspace > 0 else -1
        elif i < 2 * RANKS + WIDTH:
            token = sources.recycling.pair_rows[row, i - 2 * RANKS] if row >= 0 else -1
        elif single:
            token = sources.recycling.single[tail[-1], i - 2 * RANKS - WIDTH]
        if token < 0 or _holds(pool.tokens, first, pool.size[0], token):
            continue
        at = pool.size[0]
        pool.size[0] += 1
        pool.tokens[at], pool.parents[at], pool.nodes[at] = token, node, NOT_TAKEN
        pool.weight_sets[at] = match_prompt * MATCHES + match_workspace
        pool.kinds[at, PROMPT] = evidence(pool.from_prompt, in_prompt, token) if sources.enabled[PROMPT] else -1
        pool.kinds[at, WORKSPACE] = (
            evidence(pool.from_workspace, in_workspace, token) if sources.enabled[WORKSPACE] else -1
        )
        pool.kinds[at, RECYCLING] = -1
        if sources.enabled[RECYCLING]:
            pair = rank_in(sources.recycling.pair_rows[row], token) if row >= 0 else WIDTH + 1
            alone = rank_in(sources.recycling.single[tail[-1]], token) if single else WIDTH + 1
            pool.kinds[at, RECYCLING] = pair * KINDS + alone
        pool.sources[at] = _strongest(calibration, pool.kinds[at])
        pool.chances[at] = probability(calibration, pool.kinds[at], pool.weight_sets[at])
    _normalise(pool, first, path)


@compiled
def _holds(tokens: IntArray, first: int, stop: int, token: int) -> bool:
    return bool(np.any(tokens[first:stop] == token))


@compiled
def _strongest(calibration: CalibrationArrays, kinds: IntArray) -> int:
    """The source whose evidence speaks loudest for a token."""
    best, loudest = 0, -np.inf
    for source in range(SOURCES):
        if kinds[source] >= 0:
            odds = logit_of(calibration, source, kinds[source])
            if odds > loudest:
                best, loudest = source, odds
    return best


@compiled
def _normalise(pool: Pool, first: int, path: float) -> None:
    """Siblings exclude each other: their chances sum to no more than one."""
    total = np.float32(0.0)
    for i in range(first, pool.size[0]):
        total += pool.chances[i]
    share = 1.0 / total if total > 1.0 else 1.0
    for i in range(first, pool.size[0]):
        pool.chances[i] *= share
        pool.paths[i] = path * pool.chances[i]


@compiled
def grow(pool: Pool, sources: Sources, calibration: CalibrationArrays, max_nodes: int) -> None:
    """Take candidates, the likeliest path first, until the tree is full or nothing likely is left.

    The context's own candidates are in the pool already.
    """
    pool.size[1] = 0
    while pool.size[1] < max_nodes:
        best, chance = -1, MIN_PATH_PROBABILITY
        for i in range(pool.size[0]):
            if pool.nodes[i] == NOT_TAKEN and pool.paths[i] > chance:
                best, chance = i, pool.paths[i]
        if best < 0:
            break
        node = pool.size[1]
        pool.size[1] += 1
        pool.nodes[best], pool.picked[node] = node, best
        pool.tails[node + 1, :-1] = pool.tails[pool.parents[best] + 1, 1:]
        pool.tails[node + 1, -1] = pool.tokens[best]
        expand(pool, sources, calibration, node, pool.paths[best])


@compiled
def learn_from(pool: Pool, calibration: CalibrationArrays, node: int, chosen: int) -> None:
    """The model chose a token after a node (−1: the context): all candidates there were right or wrong."""
    for i in range(pool.size[0]):
        if pool.parents[i] == node:
            learn(calibration, pool.kinds[i], pool.weight_sets[i], 1.0 if pool.tokens[i] == chosen else 0.0)


@compiled
def lay_out(pool: Pool, count: int) -> IntArray:
    """Order of the first `count` nodes in the scored rows: the likeliest path first and contiguous, then best first.

    Keys of other branches between a path's own would change the order of a floating-point sum, and so its result.
    """
    order = np.empty(count, dtype=np.int32)
    on_spine = np.zeros(count, dtype=np.bool_)
    placed, last = 0, -1
    for node in range(count):  # best first, so the first child met is the likeliest
        if pool.parents[pool.picked[node]] == last:
            order[placed], on_spine[node] = node, True
            placed, last = placed + 1, node
    for node in range(count):
        if not on_spine[node]:
            order[placed] = node
            placed += 1
    return order
