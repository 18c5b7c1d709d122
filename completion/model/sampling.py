"""Draws a token from logits: the best one, or a sample whose noise depends on seed and position only.

Noise that is a function of (seed, absolute position) makes sampling deterministic, so a drafted token is accepted
exactly when plain sampling would have drawn it from the same logits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from completion.model.dead_ends import SampledText
from completion.request import Sampling
from drafting.arrays import FloatArray, IntArray
from drafting.compiled import compiled, compiled_within

_FIRST_SORTED = 64  # tokens that are sorted first; the whole vocabulary follows if needed

_FIRST_NUCLEUS = 1024
"""Number of tokens that are sorted first in the search for a nucleus; eight times as many follow if needed."""

_NOISE_RANGE_NATS = 30.0
"""Distance below the best score at which a token gets no noise: it would win once in 10^13 draws."""

_LEAST_TEMPERATURE = 1e-30
"""Temperature that stands for lower ones: logits divided by it are finite, and the best token always wins."""

_WORD = 2**64 - 1


def draw(
    row: FloatArray,
    sampling: Sampling,
    position: int,
    candidates: IntArray | None = None,
    allowed: Callable[[int], bool] | None = None,
    cost: Callable[[int], float] | None = None,
    text: SampledText | None = None,
) -> int | None:
    """Draw the token at `position`.

    The Gumbel-max trick: the argmax of log p + Gumbel noise is a sample of p. Among the allowed tokens in descending
    order of the same perturbed scores, the first is an exact sample of p restricted to them. `top_p` and `min_p` choose
    the tokens that take part. If none of these is allowed, they grow by the likeliest one that is.

    Args:
        row: Logits.  # [vocabulary_size]
        sampling: Temperature 0 takes the best token.
        position: Absolute position of the drawn token; together with the seed it determines the noise.
        candidates: Ids that may be drawn; None for all.
        allowed: Further condition, evaluated lazily, best candidate first.
        cost: Returns what a token's logit loses, evaluated in the same way; None for nothing.
        text: Sampled text that the token belongs to, which weighs tokens by the dead ends that are known after them.

    Returns:
        The token's id; None if no token is allowed.
    """
    if candidates is not None and not len(candidates):
        return None
    if sampling.temperature <= 0:
        return _first_of(row, candidates, allowed, cost)
    temperature = max(sampling.temperature, _LEAST_TEMPERATURE)
    scaled = row / np.float32(temperature)
    scaled_cost = None if cost is None else lambda token: cost(token) / temperature
    if candidates is not None:
        kept = np.full_like(scaled, -np.inf)
        kept[candidates] = scaled[candidates]
        scaled = kept
    kept = _truncate(scaled, sampling)
    scores = np.array(kept, dtype=np.float32)  # a copy: the row is read-only
    if text is not None and allowed is not None:
        text.weigh(scores)
        allowed = text.watched(allowed)
    _add_noise(scores, scores.max() - _NOISE_RANGE_NATS, np.uint64(sampling.seed & _WORD), np.uint64(position & _WORD))
    drawn = _first_of(scores, candidates, allowed, scaled_cost)
    if drawn is None and kept is not scaled:
        drawn = _first_of(np.where(kept == -np.inf, scaled, -np.inf), candidates, allowed, scaled_cost)
    if text is not None:
        text.note(kept, drawn)
    return drawn


def _first_of(
    scores: FloatArray,
    ids: IntArray | None,
    allowed: Callable[[int], bool] | None,
    cost: Callable[[int], float] | None,
) -> int | None:
    """Return the allowed one of some ids, None for all, with the best of all scores less its cost.  # [vocab]."""
    scores = scores if ids is None else scores[ids]
    found: int | None = None
    best = -math.inf
    for index in _descending(scores, int(scores.argmax())):
        if scores[index] <= best:  # of minus infinity, too
            break
        token = int(index if ids is None else ids[index])
        left = float(scores[index]) - (cost(token) if cost else 0.0)
        if left > best and (allowed is None or allowed(token)):
            found, best = token, left
    return found


@compiled_within
def _mixed(word: np.uint64) -> np.uint64:
    """Return SplitMix64's finaliser ("Fast splittable pseudorandom number generators"): each bit depends on all."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@compiled
def _add_noise(scores: FloatArray, weakest: np.float32, seed: np.uint64, position: np.uint64) -> None:
    """Add Gumbel noise, a function of seed, position and token, to every score above `weakest`.  # [vocab]."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    key = _mixed(_mixed(seed + golden) + position * golden)
    for token in range(len(scores)):
        if scores[token] > weakest:
            word = _mixed(key + np.uint64(token + 1) * golden)
            uniform = (np.float64(word >> np.uint64(11)) + 0.5) * 2.0**-53
            scores[token] -= np.log(-np.log(uniform))


def _truncate(scaled: FloatArray, sampling: Sampling) -> FloatArray:
    """Drop tokens below `min_p` of the best one's probability, and those outside the nucleus of mass `top_p`."""
    if sampling.min_p > 0:
        scaled = np.where(scaled < scaled.max() + np.float32(math.log(sampling.min_p)), np.float32(-np.inf), scaled)
    if sampling.top_p < 1:
        inside = _nucleus(np.exp(scaled - scaled.max()), sampling.top_p)
        kept = np.full_like(scaled, -np.inf)
        kept[inside] = scaled[inside]
        scaled = kept
    return scaled


def _nucleus(weights: FloatArray, top_p: float) -> npt.NDArray[np.int64]:
    """Return the likeliest tokens whose mass reaches `top_p`, the one that crosses it included.

    Source: "The Curious Case of Neural Text Degeneration", section 3.1.
    """
    wanted, count = top_p * float(weights.sum(dtype=np.float64)), min(_FIRST_NUCLEUS, len(weights))
    while True:
        found = np.sort(np.argpartition(-weights, count - 1)[:count])
        order = found[np.argsort(-weights[found], kind="stable")]
        mass = np.cumsum(weights[order], dtype=np.float64)
        if mass[-1] >= wanted or count == len(weights):
            return order[mass - weights[order] < wanted]
        count = min(8 * count, len(weights))


def _descending(scores: FloatArray, best: int) -> Iterator[int]:
    """Yield indices by falling score, the lower index first among equals. Sorts only as far as the caller reads."""
    yield best
    seen = 1
    if len(scores) > _FIRST_SORTED * 4:
        threshold = np.partition(scores, -_FIRST_SORTED)[-_FIRST_SORTED]
        top = np.flatnonzero(scores >= threshold)
        yield from (int(index) for index in top[np.argsort(-scores[top], kind="stable")][1:])
        seen = len(top)
    yield from (int(index) for index in np.argsort(-scores, kind="stable")[seen:])
