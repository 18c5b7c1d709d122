"""One tree from several sources, grown best first by the probability of a node's whole path.

Sources: "OPT-Tree: Speculative Decoding with Adaptive Draft Tree Structure" (best-first growth under a budget);
"EAGLE-2: Faster Inference of Language Models with Dynamic Draft Trees" (path probabilities from calibrated odds).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from drafting.arrays import FloatArray, IntArray
from drafting.calibration import (
    MATCHES,
    PATTERN,
    PROMPT,
    RECYCLING,
    SOURCES,
    WORKSPACE,
    CalibrationArrays,
    logit_of,
    probability,
)
from drafting.candidate_pool import LOOKUPS, NOT_TAKEN, Pool
from drafting.compiled import compiled
from drafting.draft_budget import best_cut, least_goodput, may_pay
from drafting.sources.ngram_index import NgramArrays
from drafting.sources.prompt_lookup import (
    RANKS,
    evidence,
    length_class,
    rank_continuations,
)
from drafting.sources.token_recycling import KINDS, WIDTH, RecyclingArrays, find_pair, rank_in

MIN_PATH_PROBABILITY = 0.02
"""A node less likely than this is worth no row on any machine."""


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
