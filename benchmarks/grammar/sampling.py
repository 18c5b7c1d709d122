"""Constrained sampling against brute force: a tiny model over a tiny language, every text enumerated.

The target is the model's next-token distribution restricted, step by step, to tokens that the grammar lets go on, and
renormalised. Adaptive weighted rejection sampling ("Fast Controlled Generation from Language Models with Adaptive
Weighted Rejection Sampling") draws from it by removing each rejected token and drawing again. Gumbel noise sorts the
vocabulary into just such a draw without replacement, and needs no new random number after a rejection: the same
distribution, from noise that depends on seed and position only.
"""

from __future__ import annotations

from collections import Counter
from functools import cache, partial

import numpy as np

from completion.grammar.grammar import load_grammar
from completion.grammar.lr.advance import Snapshot
from completion.model.sampling import draw
from completion.request import Sampling
from drafting.arrays import FloatArray

TOKENS = (b"[", b"]", b"1", b",", b"tr", b"ue", b"x")
LENGTH = 3
DRAWS = 20_000


def logits_after(text: tuple[int, ...]) -> FloatArray:
    """A fixed random model: the next token's logits depend on the last two tokens.  # [tokens]."""
    rng = np.random.default_rng([7, *text[-2:]])
    return np.asarray(rng.normal(0, 1.5, len(TOKENS)), dtype=np.float32)


def total_variation(seed: int, draws: int = DRAWS) -> float:
    """Half the sum of |drawn share − probability| over all texts of `LENGTH` tokens."""
    exact = enumerate_texts()
    drawn = Counter(draw_text(seed + number) for number in range(draws))
    texts = set(exact) | set(drawn)
    return round(0.5 * sum(abs(drawn[text] / draws - exact.get(text, 0.0)) for text in texts), 4)


def enumerate_texts() -> dict[tuple[int, ...], float]:
    """Every text of `LENGTH` tokens that JSON may begin with, and its probability."""
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
    """One text, drawn as the engine draws: lazily, best perturbed score first."""
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
    grammar = load_grammar("json")
    assert grammar is not None
    return grammar.acceptor.start()


def _may_follow(snapshot: Snapshot, token: int) -> bool:
    return _advance(snapshot, token) is not None


def _advance(snapshot: Snapshot, token: int) -> Snapshot | None:
    grammar = load_grammar("json")
    assert grammar is not None
    return grammar.acceptor.advance(snapshot, TOKENS[token])
