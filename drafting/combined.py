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
    PATTERN,
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
from drafting.draft_budget import best_cut, least_goodput, may_pay
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

LOOKUPS = 3
"""Sources that look up tokens: PROMPT, WORKSPACE, PATTERN."""

FANOUT = LOOKUPS * RANKS + 2 * WIDTH
"""Most candidates after one node."""

NOT_TAKEN = -1


class Sources(NamedTuple):
    """Where guesses come from.

    Attributes:
        enabled: Which of the sources are asked.  # [SOURCES]
        final: Tokens that end the text: nothing is guessed behind them.  # [vocabulary], or [0] for none
    """

    prompt: NgramArrays
    workspace: NgramArrays
    recycling: RecyclingArrays
    enabled: npt.NDArray[np.bool_]
    final: npt.NDArray[np.bool_]


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
def expand(pool: Pool, sources: Sources, calibration: CalibrationArrays, node: int, path: float) -> None:
    """Add what may follow a node (−1: the context) to the pool, each token once, with its chance."""
    tail = pool.tails[node + 1]
    _look_up(pool, sources, tail)
    first = pool.size[0]
    for lookup in range(LOOKUPS):
        for rank in range(RANKS if pool.found[lookup] > 0 else 0):
            _add(pool, sources, calibration, first, node, pool.lookups[lookup].tokens[rank])
    for rows in range(2):
        for rank in range(WIDTH if pool.recycled[rows] >= 0 else 0):
            _add(pool, sources, calibration, first, node, _recycled_row(pool, sources, rows)[rank])
    _normalise(pool, first, path)


@compiled
def _look_up(pool: Pool, sources: Sources, tail: IntArray) -> None:
    """Ask all sources what followed the tail before."""
    pool.found[:] = 0
    if sources.enabled[PROMPT]:
        pool.found[PROMPT] = rank_continuations(sources.prompt, tail, 0, pool.lookups[PROMPT])
    if sources.enabled[WORKSPACE]:
        pool.found[WORKSPACE] = rank_continuations(sources.workspace, tail, 0, pool.lookups[WORKSPACE])
    if sources.enabled[PATTERN]:
        pool.found[PATTERN] = rank_continuations(sources.prompt, tail, 1, pool.lookups[PATTERN])
    pool.recycled[:] = -1
    if sources.enabled[RECYCLING] and 0 <= tail[-1] < len(sources.recycling.single):
        if tail[-2] >= 0:
            pool.recycled[0] = find_pair(sources.recycling, tail[-2], tail[-1])
        if sources.recycling.single[tail[-1], 0] >= 0:
            pool.recycled[1] = tail[-1]


@compiled
def _recycled_row(pool: Pool, sources: Sources, rows: int) -> IntArray:
    """Candidates after the last pair of tokens (0), or after the last token (1).  # [WIDTH]."""
    matrix = sources.recycling.pair_rows if rows == 0 else sources.recycling.single
    row: IntArray = matrix[pool.recycled[rows]]
    return row


@compiled
def _add(pool: Pool, sources: Sources, calibration: CalibrationArrays, first: int, node: int, token: int) -> None:
    """Weigh all evidence for one token after a node."""
    if token < 0 or _holds(pool.tokens, first, pool.size[0], token):
        return
    at = pool.size[0]
    pool.size[0] += 1
    pool.tokens[at], pool.parents[at], pool.nodes[at] = token, node, NOT_TAKEN
    for lookup in range(LOOKUPS):
        kind = evidence(pool.lookups[lookup], pool.found[lookup], token)
        pool.kinds[at, lookup] = kind if sources.enabled[lookup] else -1
    pool.kinds[at, RECYCLING] = -1
    if sources.enabled[RECYCLING]:
        pair = rank_in(_recycled_row(pool, sources, 0), token) if pool.recycled[0] >= 0 else WIDTH + 1
        alone = rank_in(_recycled_row(pool, sources, 1), token) if pool.recycled[1] >= 0 else WIDTH + 1
        pool.kinds[at, RECYCLING] = pair * KINDS + alone
    pool.weight_sets[at] = _matched(pool, PROMPT) * MATCHES + _matched(pool, WORKSPACE)
    pool.sources[at] = _strongest(calibration, pool.kinds[at])
    pool.chances[at] = probability(calibration, pool.kinds[at], pool.weight_sets[at])


@compiled
def _matched(pool: Pool, lookup: int) -> int:
    """Class of the longest match that a lookup found, 0 for none."""
    return 1 + length_class(pool.lookups[lookup].longest[0]) if pool.found[lookup] > 0 else 0


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
def grow(pool: Pool, sources: Sources, calibration: CalibrationArrays, costs_ms: FloatArray) -> int:
    """Take candidates, the likeliest path first, for as long as more of them could pay.

    The context's own candidates are in the pool already.

    Args:
        pool: Receives nodes and their candidates.
        sources: Where guesses come from.
        calibration: How likely they are.
        costs_ms: C(N) of a step with N nodes, up to the largest tree.  # [≥ 1]

    Returns:
        How many of the nodes, in best-first order, are worth scoring.
    """
    pool.size[1] = 0
    expected, record = 1.0, least_goodput(costs_ms)
    while pool.size[1] < len(costs_ms) - 1:
        best, chance = -1, MIN_PATH_PROBABILITY
        for i in range(pool.size[0]):
            if pool.nodes[i] == NOT_TAKEN and pool.paths[i] > chance:
                best, chance = i, pool.paths[i]
        if best < 0 or not may_pay(expected, chance, pool.size[1], costs_ms, record):
            break
        node = pool.size[1]
        pool.size[1] += 1
        pool.nodes[best], pool.picked[node] = node, best
        pool.tails[node + 1, :-1] = pool.tails[pool.parents[best] + 1, 1:]
        pool.tails[node + 1, -1] = pool.tokens[best]
        expected += chance
        record = max(record, expected / costs_ms[node + 1])
        if pool.tokens[best] >= len(sources.final) or not sources.final[pool.tokens[best]]:
            expand(pool, sources, calibration, node, pool.paths[best])
    return best_cut(pool.paths[pool.picked[: pool.size[1]]], costs_ms)


@compiled
def draft(pool: Pool, sources: Sources, calibration: CalibrationArrays, costs_ms: FloatArray) -> int:
    """A whole tree from the context's tail, which is in the empty pool; returns what `grow` does."""
    expand(pool, sources, calibration, -1, 1.0)
    return grow(pool, sources, calibration, costs_ms)


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
