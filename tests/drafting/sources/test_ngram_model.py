"""Shares of continuations: each order of the mixture counts its own occurrences."""

import numpy as np
import pytest

from drafting.calibration import default_calibration
from drafting.draft_budget import StepCosts
from drafting.session import Drafters
from drafting.sources.ngram_model import ORDER_WEIGHTS


@pytest.fixture
def drafters():
    return Drafters(default_calibration(), StepCosts({0: 1.0, 8: 1.2}, 8), vocabulary_size=100)


def expected(text, context, tokens):
    """Count every occurrence of the context's last 1, 2, ... tokens."""
    shares = np.zeros(len(tokens))
    for order, weight in enumerate(ORDER_WEIGHTS, start=1):
        run = context[-order:]
        after = [text[at + order] for at in range(len(text) - order) if text[at : at + order] == run]
        if len(run) == order and after:
            shares += [weight * after.count(token) / len(after) for token in tokens]
    return shares


def test_a_frequent_long_context_leaves_the_short_ones_their_counts(drafters):
    """Ten occurrences of five tokens once ended the search before the short contexts' other continuations."""
    long, text = [1, 2, 3, 4, 5], []
    for number in range(10):
        text += [*long, 6, 5, 7 + number % 2, 4, 5, 9]
    found = drafters.ngrams(text).shares([*long], [6, 7, 8, 9])
    assert found == pytest.approx(expected(text, long, [6, 7, 8, 9]))


@pytest.mark.parametrize("seed", range(5))
def test_random_texts_are_counted_exactly(drafters, seed):
    random = np.random.default_rng(seed)
    text = random.integers(1, 5, 40).tolist()
    for length in range(7):
        context = random.integers(1, 5, length).tolist()
        found = drafters.ngrams(text).shares(context, [1, 2, 3, 4])
        assert found == pytest.approx(expected(text, context, [1, 2, 3, 4]))
