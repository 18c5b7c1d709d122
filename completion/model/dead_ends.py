"""Learns from sampled texts where the grammar has dead ends, so that later texts get the right distribution.

A sampler that draws again at each rejected token gives the mass of dead ends to their neighbours. The right
distribution is the model's, given that the whole text is grammatical.

Source: "Grammar-Aligned Decoding", section 3 (ASAp).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from drafting.arrays import FloatArray

MAX_TEXTS = 64
"""Number of texts after the same prompt that are learned from; a text has some hundred tokens."""

_LEAST = 1e-9
"""Least share of a prefix that a text had: what was drawn cannot be a dead end."""


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
