"""Best-first growth of one draft tree from several sources, by the probability of a node's whole path.

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
from drafting.compiled import compiled, compiled_within
from drafting.draft_budget import best_cut, may_pay, min_goodput
from drafting.sources.ngram_index import NgramArrays
from drafting.sources.prompt_lookup import RANKS, evidence, length_class, rank_continuations
from drafting.sources.token_recycling import ALONE, KINDS, WIDTH, RecyclingArrays, find_row, rank_in

MIN_PATH_PROBABILITY = 0.02
"""Path probability that a node must exceed; a less likely one pays for its row on no machine."""


class Sources(NamedTuple):
    """Everything that candidates are taken from.

    Attributes:
        prompt: Index of the request's own tokens.
        workspace: Index of the workspace's documents.
        recycling: The model's best tokens after earlier tokens.
        enabled: Which sources may guess.  # [SOURCES]
        final: Tokens after which nothing is guessed.  # [vocabulary], or [0] for none
    """

    prompt: NgramArrays
    workspace: NgramArrays
    recycling: RecyclingArrays
    enabled: npt.NDArray[np.bool_]
    final: npt.NDArray[np.bool_]


@compiled
def expand(pool: Pool, sources: Sources, calibration: CalibrationArrays, node: int, path: float) -> None:
    """Add the candidates after a node, −1 for the context's end, to the pool, each token once.

    `path` is the probability of the node's path.
    """
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


@compiled_within
def _look_up(pool: Pool, sources: Sources, tail: IntArray) -> None:
    """Find in every enabled source what followed the tail before."""
    pool.found[:] = 0
    if sources.enabled[PROMPT]:
        pool.found[PROMPT] = rank_continuations(sources.prompt, tail, 0, pool.lookups[PROMPT])
    if sources.enabled[WORKSPACE]:
        pool.found[WORKSPACE] = rank_continuations(sources.workspace, tail, 0, pool.lookups[WORKSPACE])
    if sources.enabled[PATTERN]:
        pool.found[PATTERN] = rank_continuations(sources.prompt, tail, 1, pool.lookups[PATTERN])
    pool.recycled[:] = -1
    if sources.enabled[RECYCLING] and tail[-1] >= 0:
        if tail[-2] >= 0:
            pool.recycled[0] = find_row(sources.recycling, tail[-2], tail[-1])
        pool.recycled[1] = find_row(sources.recycling, ALONE, tail[-1])


@compiled_within
def _recycled_row(pool: Pool, sources: Sources, rows: int) -> IntArray:
    """Return the candidates after the last pair of tokens (0) or after the last token (1).  # [WIDTH]."""
    row: IntArray = sources.recycling.candidates[pool.recycled[rows]]
    return row


@compiled_within
def _add(pool: Pool, sources: Sources, calibration: CalibrationArrays, first: int, node: int, token: int) -> None:
    """Add one token after a node, with all evidence for it and its probability; skip a token that is there already."""
    if token < 0 or _contains(pool.tokens, first, pool.size[0], token):
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


@compiled_within
def _matched(pool: Pool, lookup: int) -> int:
    """Return the class of the longest match that a lookup found, 0 for none."""
    return 1 + length_class(pool.lookups[lookup].longest[0]) if pool.found[lookup] > 0 else 0


@compiled_within
def _contains(tokens: IntArray, first: int, stop: int, token: int) -> bool:
    found = False
    for i in range(first, stop):  # numba takes a quarter of a second to compile `np.any`
        found |= tokens[i] == token
    return found


@compiled_within
def _strongest(calibration: CalibrationArrays, kinds: IntArray) -> int:
    """Return the source whose evidence gives the highest odds."""
    best, highest = 0, -np.inf
    for source in range(SOURCES):
        if kinds[source] >= 0:
            odds = logit_of(calibration, source, kinds[source])
            if odds > highest:
                best, highest = source, odds
    return best


@compiled_within
def _normalise(pool: Pool, first: int, path: float) -> None:
    """Scale the probabilities of siblings, which exclude each other, to a sum of at most one."""
    total = np.float32(0.0)
    for i in range(first, pool.size[0]):
        total += pool.chances[i]
    share = 1.0 / total if total > 1.0 else 1.0
    for i in range(first, pool.size[0]):
        pool.chances[i] *= share
        pool.paths[i] = path * pool.chances[i]


@compiled
def grow(pool: Pool, sources: Sources, calibration: CalibrationArrays, costs_ms: FloatArray) -> int:
    """Take candidates as nodes, the likeliest path first, until no larger tree can have a higher goodput.

    The pool already holds the candidates after the context's end. C(N), up to the largest tree, is `costs_ms`.  # [≥ 1]

    Returns:
        How many of the nodes, in best-first order, to score.
    """
    pool.size[1] = 0
    expected, best_goodput = 1.0, min_goodput(costs_ms)
    while pool.size[1] < len(costs_ms) - 1:
        best, chance = -1, MIN_PATH_PROBABILITY
        for i in range(pool.size[0]):
            if pool.nodes[i] == NOT_TAKEN and pool.paths[i] > chance:
                best, chance = i, pool.paths[i]
        if best < 0 or not may_pay(expected, chance, pool.size[1], costs_ms, best_goodput):
            break
        node = pool.size[1]
        pool.size[1] += 1
        pool.nodes[best], pool.picked[node] = node, best
        for i in range(pool.tails.shape[1] - 1):  # numba takes a second to compile a copy of slices
            pool.tails[node + 1, i] = pool.tails[pool.parents[best] + 1, i + 1]
        pool.tails[node + 1, -1] = pool.tokens[best]
        expected += chance
        best_goodput = max(best_goodput, expected / costs_ms[node + 1])
        if pool.tokens[best] >= len(sources.final) or not sources.final[pool.tokens[best]]:
            here, path = np.int64(node), np.float64(pool.paths[best])  # the types of a call by Python
            expand(pool, sources, calibration, here, path)  # type: ignore[arg-type]
    return best_cut(pool.paths, pool.picked[: pool.size[1]], costs_ms)
