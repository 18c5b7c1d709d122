"""Constrained sampling compared with an enumeration of all texts of a tiny model over a tiny language.

The target is the next-token distribution of the model, restricted at each step to the tokens that the grammar accepts,
and renormalised. Adaptive weighted rejection sampling ("Fast Controlled Generation from Language Models with Adaptive
Weighted Rejection Sampling") draws from it: it removes each rejected token and draws again. Gumbel noise orders the
vocabulary as such a draw without replacement. It has the same distribution, needs no new random number after a
rejection, and depends on the seed and the position only.
"""

from __future__ import annotations

from collections import Counter
from functools import cache, partial

import numpy as np

from benchmarks.grammar.grammars import GRAMMARS
from completion.grammar.lr.advance import Snapshot
from completion.model.sampling import draw
from completion.request import Sampling
from drafting.arrays import FloatArray

TOKENS = (b"[", b"]", b"1", b",", b"tr", b"ue", b"x")
LENGTH = 3
"""Length of the enumerated texts, in tokens."""
DRAWS = 20_000
"""Number of drawn texts."""


def logits_after(text: tuple[int, ...]) -> FloatArray:
    """Return the logits of a fixed random model. They depend on the last two tokens.  # [tokens]."""
    rng = np.random.default_rng([7, *text[-2:]])
    return np.asarray(rng.normal(0, 1.5, len(TOKENS)), dtype=np.float32)


def total_variation(seed: int) -> float:
    """Return half the sum of |drawn share − probability| over all texts of `LENGTH` tokens."""
    exact = enumerate_texts()
    drawn = Counter(draw_text(seed + number) for number in range(DRAWS))
    texts = set(exact) | set(drawn)
    return round(0.5 * sum(abs(drawn[text] / DRAWS - exact.get(text, 0.0)) for text in texts), 4)


def enumerate_texts() -> dict[tuple[int, ...], float]:
    """Return each text of `LENGTH` tokens that can begin a JSON document, with its probability."""
    level: dict[tuple[int, ...], tuple[float, Snapshot]] = {(): (1.0, _start())}
    for _ in range(LENGTH):
        after: dict[tuple[int, ...], tuple[float, Snapshot]] = {}
        for text, (probability, snapshot) in level.items():
            weights = np.exp(logits_after(text).astype(np.float64))
            going_on = {
                token: state for token in range(len(TOKENS)) if (state := _advance(snapshot, token)) is not None
            }
            mass = sum(weights[token] for token in going_on)
            after |= {
                (*text, token): (probability * float(weights[token] / mass), state) for token, state in going_on.items()
            }
        level = after
    return {text: probability for text, (probability, _) in level.items()}


def draw_text(seed: int) -> tuple[int, ...]:
    """Draw one text as the engine does: lazily, best perturbed score first."""
    text: tuple[int, ...] = ()
    snapshot = _start()
    sampling = Sampling(temperature=1.0, seed=seed)
    for position in range(LENGTH):
        token = draw(logits_after(text), sampling, position, None, partial(_may_follow, snapshot))
        assert token is not None, text
        following = _advance(snapshot, token)
        assert following is not None, text
        text, snapshot = (*text, token), following
    return text


@cache
def _start() -> Snapshot:
    grammar = GRAMMARS.load("json")
    assert grammar is not None
    return grammar.acceptor.start()


def _may_follow(snapshot: Snapshot, token: int) -> bool:
    return _advance(snapshot, token) is not None


def _advance(snapshot: Snapshot, token: int) -> Snapshot | None:
    grammar = GRAMMARS.load("json")
    assert grammar is not None
    return grammar.acceptor.advance(snapshot, TOKENS[token])
