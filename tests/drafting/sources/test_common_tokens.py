"""Drafts of a new workspace start from what is common in public code, if it was counted for the model's vocabulary."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from completion.model.store.model_store import prepare
from completion.model.tokenizer import CodeTokenizer
from drafting.calibration import default_calibration
from drafting.draft_budget import StepCosts
from drafting.session import Drafters
from drafting.sources.token_recycling import ALONE, common_recycling, find_row


@pytest.fixture(scope="module")
def tokenizer():
    return CodeTokenizer.from_folder(prepare("default").folder)


def test_frequent_pairs_of_public_code_are_known(tokenizer):
    memory = common_recycling(tokenizer.digest)
    for text in (" std::string", " self.assertEqual(", " public static final"):
        before, token, after, *_ = tokenizer.encode(text)
        assert after in memory.candidates[find_row(memory, before, token)]
        assert find_row(memory, ALONE, token) >= 0


def test_another_vocabulary_starts_empty():
    assert common_recycling("another").used == 0


def test_each_workspace_starts_from_the_common_rows_and_learns_alone(tokenizer):
    common, costs = partial(common_recycling, tokenizer.digest), StepCosts({0: 10.0, 8: 12.0}, 8)
    shared = Drafters(default_calibration(), costs, tokenizer.vocabulary_size, common=common)
    shared.recycling("a").candidates[:] = 7
    assert np.array_equal(shared.recycling("b").candidates, common().candidates)
