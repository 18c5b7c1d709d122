"""Constrained sampling compared with the exact distribution: an enumeration of all texts of a tiny model and language.

The target is the model's distribution of whole texts, given that the grammar accepts them. Three samplers draw:

- `local` removes each rejected token and draws again. It restricts the model at each step, which distorts the
  distribution of whole texts ("Grammar-Aligned Decoding", section 2).
- `asap` is what the engine does: it also weighs tokens by the dead ends that the document's earlier texts met.
- `weighted` draws as `local` does, and weighs each text by an unbiased estimate of the mass that was left to it
  ("Fast Controlled Generation from Language Models with Adaptive Weighted Rejection Sampling", section 3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache, partial
from statistics import mean

import numpy as np

from benchmarks.grammar.grammars import GRAMMARS
from completion.grammar.lr.advance import Snapshot
from completion.model.sampling import DeadEnds, Future, SampledText, draw
from completion.request import Sampling
from drafting.arrays import FloatArray

TOKENS = (b"[", b"]", b"1", b",", b"tr", b"ue", b"x")
LENGTH = 3
"""Length of the enumerated texts, in tokens."""
COUNTS = (10, 100, 1000)
"""Numbers of drawn texts after which the distributions are compared."""
RUNS = 5
"""Number of times that each count is drawn; the figures are means."""

Text = tuple[int, ...]
Distribution = dict[Text, float]  # by text


def run_sampling(seed: int) -> dict[str, dict[str, float]]:
    """Return total variations to the exact distribution, by sampler and number of texts.

    Those of `drawn` texts include what chance does to so few. The others are of the distribution of the next text.
    """
    target = exact_distribution()
    found: dict[str, dict[str, list[float]]] = {}
    for run in range(RUNS):
        for name, by_count in run_samplers(seed + run * max(COUNTS)).items():
            for count, distribution in by_count.items():
                found.setdefault(name, {}).setdefault(count, []).append(total_variation(target, distribution))
    return {name: {count: round(mean(each), 4) for count, each in rows.items()} for name, rows in found.items()}


def run_samplers(first_seed: int) -> dict[str, dict[str, Distribution]]:
    """Draw texts; return the distribution of each sampler after each of `COUNTS` of them."""
    local, aligned, weights = list[Text](), list[Text](), list[float]()
    dead_ends, rng = DeadEnds(max(COUNTS)), np.random.default_rng(first_seed)
    found: dict[str, dict[str, Distribution]] = {}
    for seed in range(first_seed, first_seed + max(COUNTS)):
        alone, text = SampledText("", seed, Future()), dead_ends.begin("", seed)
        local.append(draw_text(alone))
        weights.append(weight_of(alone, rng))
        aligned.append(draw_text(text))
        dead_ends.learn(text, LENGTH)
        if (count := len(local)) in COUNTS:
            after = {
                "local": sampled_distribution(Future()),
                "asap": sampled_distribution(dead_ends.begin("", -1).known),
                "local drawn": shares(local, [1.0] * count),
                "weighted drawn": shares(local, weights),
                "asap drawn": shares(aligned, [1.0] * count),
            }
            for name, distribution in after.items():
                found.setdefault(name, {})[str(count)] = distribution
    return found


def probabilities_after(text: Text) -> FloatArray:
    """Return the next-token probabilities of a fixed random model. They depend on the last two tokens.  # [tokens]."""
    rng = np.random.default_rng([7, *text[-2:]])
    weights = np.exp(rng.normal(0, 1.5, len(TOKENS)))
    return np.asarray(weights / weights.sum(), dtype=np.float32)


def exact_distribution() -> Distribution:
    """Return the model's distribution of the texts that can begin a JSON document."""
    level: dict[Text, tuple[float, Snapshot]] = {(): (1.0, _start())}
    for _ in range(LENGTH):
        level = {
            (*text, token): (probability * float(share), after)
            for text, (probability, snapshot) in level.items()
            for token, share in enumerate(probabilities_after(text))
            if (after := _advance(snapshot, token)) is not None
        }
    mass = sum(probability for probability, _ in level.values())
    return {text: probability / mass for text, (probability, _) in level.items()}


def sampled_distribution(known: Future | None) -> Distribution:
    """Return the distribution of the texts that are drawn with what is known of their dead ends."""
    level: dict[Text, tuple[float, Snapshot, Future]] = {(): (1.0, _start(), known or Future())}
    for _ in range(LENGTH):
        longer: dict[Text, tuple[float, Snapshot, Future]] = {}
        for text, (probability, snapshot, future) in level.items():
            share = probabilities_after(text)
            after = {token: _advance(snapshot, token) for token in range(len(TOKENS))}
            weights = {
                token: share[token] * future.after.get(token, Future()).grammatical for token in after if after[token]
            }
            mass = sum(weights.values())
            for token, weight in weights.items():
                state = after[token]
                assert state is not None
                longer[*text, token] = (probability * float(weight / mass), state, future.after.get(token, Future()))
        level = longer
    return {text: probability for text, (probability, _, _) in level.items()}


def draw_text(text: SampledText) -> Text:
    """Draw a text as the engine does: lazily, best perturbed score first."""
    tokens: Text = ()
    snapshot = _start()
    sampling = Sampling(temperature=1.0, seed=text.seed)
    for position in range(LENGTH):
        row = np.log(probabilities_after(tokens))
        token = draw(row, sampling, position, None, partial(_may_follow, snapshot), text=text)
        assert token is not None, tokens
        following = _advance(snapshot, token)
        assert following is not None, tokens
        tokens, snapshot = (*tokens, token), following
    return tokens


def weight_of(text: SampledText, rng: np.random.Generator) -> float:
    """Return an unbiased estimate of the product of the text's renormalisers.

    Of each position it draws again, without the tokens that were rejected, until the grammar has accepted two. Of n
    draws up to the second success, 1 / (n - 1) is an unbiased estimate of the probability of a success.
    """
    tokens: Text = ()
    snapshot, weight = _start(), 1.0
    for drawn in text.drawn:
        left = np.asarray(probabilities_after(tokens), dtype=np.float64)
        left[list(drawn.rejected)] = 0.0
        mass, accepted, draws = float(left.sum()), 0, 0
        while accepted < 2:
            draws += 1
            accepted += _may_follow(snapshot, int(rng.choice(len(left), p=left / mass)))
        weight *= mass / (draws - 1)
        assert drawn.token is not None
        following = _advance(snapshot, drawn.token)
        assert following is not None, tokens
        tokens, snapshot = (*tokens, drawn.token), following
    return weight


def shares(texts: Sequence[Text], weights: Sequence[float]) -> Distribution:
    """Return the share of each text in the weight of all."""
    found: Counter[Text] = Counter()
    for text, weight in zip(texts, weights, strict=True):
        found[text] += weight  # type: ignore[assignment]
    return {text: weight / sum(weights) for text, weight in found.items()}


def total_variation(one: Distribution, other: Distribution) -> float:
    """Return half the sum of the differences of all probabilities."""
    return 0.5 * sum(abs(one.get(text, 0.0) - other.get(text, 0.0)) for text in {*one, *other})


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
