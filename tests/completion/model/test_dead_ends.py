"""Dead ends that sampled texts met lower what leads to them, by what is known before a seed's first text."""

from __future__ import annotations

import numpy as np
import pytest

from completion.model.sampling import DeadEnds, draw
from completion.request import Sampling

ROWS = {(): [0.5, 0.5], (0,): [0.9, 0.1], (1,): [0.5, 0.5]}
"""Probabilities of two tokens; the text that starts with 0 0 is a dead end, which leaves 1/11 of the rest to 0 1."""


def sample(dead_ends: DeadEnds, seed: int, prompt: str = "") -> tuple[int, ...]:
    text, tokens = dead_ends.begin(prompt, seed), ()
    for position in range(2):
        row, before = np.log(np.array(ROWS[tokens], dtype=np.float32)), tokens
        drawn = draw(
            row, Sampling(1.0, seed=seed), position, None, lambda token, at=before: (*at, token) != (0, 0), text=text
        )
        tokens = (*tokens, drawn)
    dead_ends.learn(text, 2)
    return tokens


def test_known_dead_ends_give_each_text_its_share_of_the_grammatical_texts():
    dead_ends = DeadEnds(1000)
    found = [sample(dead_ends, seed) for seed in range(400)]
    known = dead_ends.begin("", -1).known
    assert known.grammatical == pytest.approx(0.55)
    assert known.after[0].grammatical == pytest.approx(0.1)
    assert np.mean([text == (0, 1) for text in found[20:]]) == pytest.approx(1 / 11, abs=0.06)
    # without what is known it would be one half


def test_a_seed_repeats_its_text_whatever_was_learned_since():
    dead_ends = DeadEnds()
    found = [sample(dead_ends, seed) for seed in range(100)]
    assert [sample(dead_ends, seed) for seed in range(100)] == found


def test_another_prompt_forgets_and_a_text_of_the_one_before_teaches_nothing():
    dead_ends = DeadEnds()
    late = dead_ends.begin("one", 0)
    for seed in range(20):
        sample(dead_ends, seed, "one")
    assert dead_ends.begin("one", -1).known.grammatical < 1
    assert dead_ends.begin("two", 0).known.grammatical == 1
    dead_ends.learn(late, 2)
    assert dead_ends.begin("two", 1).known.after == {}


def test_a_nucleus_of_dead_ends_only_teaches_nothing_and_is_left():
    dead_ends = DeadEnds()
    text = dead_ends.begin("", 1)
    row = np.log(np.array([0.9, 0.1], dtype=np.float32))
    sampling = Sampling(temperature=1.0, top_p=0.5, seed=1)
    assert draw(row, sampling, 0, None, lambda token: token == 1, text=text) == 1
    dead_ends.learn(text, 1)
    assert dead_ends.begin("", 2).known.grammatical == 1
