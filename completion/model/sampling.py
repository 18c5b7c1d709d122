"""Draws a token from logits: the best one, or a sample whose noise depends on seed and position only.

Noise that is a function of (seed, absolute position) makes sampling deterministic, so a drafted token is accepted
exactly when plain sampling would have drawn it from the same logits.

A sampler that draws again at each rejected token gives the mass of the grammar's dead ends to their neighbours. The
right distribution is the model's, given that the whole text is grammatical. So sampled texts teach where dead ends are.
Source: "Grammar-Aligned Decoding", section 3 (ASAp).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from completion.request import Sampling
from drafting.arrays import FloatArray, IntArray
from drafting.compiled import compiled, compiled_within

_FIRST_SORTED = 64  # tokens that are sorted first; the whole vocabulary follows if needed

_FIRST_NUCLEUS = 1024
"""Number of tokens that are sorted first in the search for a nucleus; eight times as many follow if needed."""

_NOISE_RANGE_NATS = 30.0
"""Distance below the best allowed score at which a token gets no noise: it would win once in 10^13 draws."""

_LEAST_TEMPERATURE = 1e-30
"""Temperature that stands for lower ones: logits divided by it are finite, and the best token always wins."""

_WORD = 2**64 - 1

MAX_TEXTS = 64
"""Number of texts after the same prompt that are learned from; a text has some hundred tokens."""

_LEAST = 1e-9
"""Least share of a prefix that a text had: what was drawn cannot be a dead end."""


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
    first_of = partial(_first_of, ids=candidates, allowed=allowed, cost=scaled_cost)
    drawn = _first_with_noise(scores, kept, sampling.seed, position, first_of, scaled_cost)
    if drawn is None and kept is not scaled:
        drawn = first_of(np.where(kept == -np.inf, scaled, -np.inf))
    if text is not None:
        text.note(kept, drawn)
    return drawn


def _first_with_noise(
    scores: FloatArray,
    kept: FloatArray,
    seed: int,
    position: int,
    first_of: Callable[[FloatArray], int | None],
    cost: Callable[[int], float] | None,
) -> int | None:
    """Return the first token by scores to which noise is added, as far below the best one as it can matter.

    If the best one is rejected or costs, what is as far below the first of the others gets noise, too.
    """
    best, key = int(scores.argmax()), (np.uint64(seed & _WORD), np.uint64(position & _WORD))
    near = scores[best] - np.float32(_NOISE_RANGE_NATS)
    _add_noise(scores, kept, near, np.float32(np.inf), *key)
    drawn = first_of(scores)
    left = -math.inf if drawn is None else float(scores[drawn]) - (cost(drawn) if cost else 0.0)
    if -math.inf < left < scores[best]:
        _add_noise(scores, kept, np.float32(left - _NOISE_RANGE_NATS), near, *key)
        drawn = first_of(scores)
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
def _add_noise(
    scores: FloatArray, kept: FloatArray, above: np.float32, most: np.float32, seed: np.uint64, position: np.uint64
) -> None:
    """Add Gumbel noise, a function of seed, position and token, where `kept` is above a bound and at most another."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    key = _mixed(_mixed(seed + golden) + position * golden)
    for token in range(len(scores)):
        if above < kept[token] <= most:
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


class Drawn(NamedTuple):
    """A drawn token, with its probability, and those of the tokens that the grammar rejected in its place."""

    token: int | None
    probability: float
    rejected: dict[int, float]


@dataclass(slots=True)
class Future:
    """A prefix of sampled texts.

    Attributes:
        probability: Probability of its last token after the tokens before it.
        grammatical: Upper bound of the probability that it goes on grammatically.
        after: Known prefixes with one more token.
    """

    probability: float = 1.0
    grammatical: float = 1.0
    after: dict[int | None, Future] = field(default_factory=dict)

    def learn(self, text: Iterable[Drawn]) -> None:
        """Lower the bounds along a text that starts here, from its end to its start."""
        path = [self]
        for token, probability, rejected in text:
            path[-1].after |= {dead: Future(share, 0.0) for dead, share in rejected.items()}
            path.append(path[-1].after.setdefault(token, Future(probability)))
        for future in reversed(path[:-1]):
            lost = sum(each.probability * (1.0 - each.grammatical) for each in future.after.values())
            future.grammatical = max(1.0 - lost, _LEAST)


class SampledText:
    """A text that is drawn token by token, weighed by what is known of its futures.

    Args:
        prompt: What the logits and the grammar depend on.
        seed: Seed of the text.
        known: What earlier texts taught of the tokens so far; None if nothing.

    Attributes:
        drawn: The tokens so far.
    """

    def __init__(self, prompt: Hashable, seed: int, known: Future) -> None:
        self.prompt, self.seed = prompt, seed
        self.known: Future | None = known
        self._rejected: list[int] = []
        self.drawn: list[Drawn] = []

    def weigh(self, scores: FloatArray) -> None:
        """Add the logarithm of the known share that goes on grammatically to each token's score.  # [vocabulary]."""
        for token, future in self.known.after.items() if self.known else ():
            if token is not None and future.grammatical < 1.0:
                scores[token] += math.log(future.grammatical) if future.grammatical else -math.inf

    def watched(self, allowed: Callable[[int], bool]) -> Callable[[int], bool]:
        """Return `allowed`, which also notes what it rejects at the next position."""

        def check(token: int) -> bool:
            passes = allowed(token)
            if not passes:
                self._rejected.append(token)
            return passes

        return check

    def note(self, scores: FloatArray, token: int | None) -> None:
        """Note the drawn token.

        Args:
            scores: Logarithms of the weights of the tokens that take part, before `weigh`.  # [vocabulary]
            token: The token; where the grammar allows none of those that take part, it is another one or None.
        """
        if token is None or scores[token] == -np.inf:
            self.drawn.append(Drawn(token, 1.0, {}))
        else:
            weights = np.exp(scores - scores.max())
            shares = weights[[token, *self._rejected]] / weights.sum(dtype=np.float64)
            self.drawn.append(
                Drawn(token, float(shares[0]), dict(zip(self._rejected, shares[1:].tolist(), strict=True)))
            )
        self._rejected.clear()
        self.known = self.known.after.get(token) if self.known else None


class DeadEnds:
    """What the texts taught that were sampled after a document's last prompt, by seed.

    A text is drawn by what those with other seeds had taught before it was first drawn, so a seed repeats its text.
    """

    def __init__(self, most: int = MAX_TEXTS) -> None:
        self._most = most
        self._prompt: Hashable = None
        self._texts: dict[int, list[Drawn]] = {}

    def begin(self, prompt: Hashable, seed: int) -> SampledText:
        """Start a text. What is known of another prompt is forgotten."""
        if prompt != self._prompt:
            self._prompt, self._texts = prompt, {}
        known = Future()
        for earlier in takewhile(lambda each: each != seed, self._texts):
            known.learn(self._texts[earlier])
        return SampledText(prompt, seed, known)

    def learn(self, text: SampledText, tokens: int) -> None:
        """Learn from the first `tokens` draws of a text, which are those that do not depend on drafts."""
        drawn = text.drawn[:tokens]
        last = max((index for index, each in enumerate(drawn, start=1) if each.rejected), default=0)
        if text.prompt == self._prompt and len(self._texts) < self._most:
            self._texts.setdefault(text.seed, drawn[:last])
