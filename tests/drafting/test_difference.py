"""The gap of a differing token: how close the model's choice was, as the drafting benchmark measures it."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.drafting.difference import LARGEST_GAP, gap
from completion.model.sampling import draw
from completion.request import Sampling


def test_the_greedy_gap_is_the_difference_of_the_logits():
    row = np.array([0.0, 3.0, 2.75, -1.0], dtype=np.float32)
    assert gap(row, Sampling(), 5, chosen=1, other=2) == pytest.approx(0.25, abs=1e-5)
    assert gap(row, Sampling(), 5, chosen=2, other=1) == 0.0


def test_the_sampled_gap_includes_the_noise():
    row = np.zeros(6, dtype=np.float32)
    sampling = Sampling(temperature=0.5, seed=3)
    chosen = draw(row, sampling, 9)
    other = 0 if chosen else 1
    found = gap(row, sampling, 9, chosen, other)
    assert 0 < found < LARGEST_GAP
    row[other] += found + 1e-3
    assert draw(row, sampling, 9, np.array(sorted((chosen, other)), dtype=np.int32)) == other
