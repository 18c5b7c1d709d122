"""Trees of several caches that are scored in one pass have, bit for bit, the logits and keys that each has alone."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from completion.errors import ModelError
from completion.model.causal_model import ScorePass
from completion.model.int8.kernel_arguments import MAX_ROWS
from completion.model.int8.packed_weights import load_packed
from completion.model.int8.quantized import QuantizedTransformer
from completion.model.transformer import has_int8_instructions
from tests.completion.model.rows import chain, rows_of, slots, tokens

pytestmark = pytest.mark.skipif(not has_int8_instructions(), reason="this processor lacks AVX2")
PASTS = (1, 63, 64, 130, 17)
TREES = ([-1], [-1, 0, 0, 1, 1, 2], [-1, 0, 1, 2, 3, 4, 5], [-1, 0, 0, 0, 1, 3, 3, 6], [-1, -1, 0])


@pytest.fixture
def model(tiny, tmp_path):
    return QuantizedTransformer(load_packed(tiny[0], tmp_path), 2)


def cache_of(model, past, seed=0):
    cache = model.new_cache(512)
    model.prefill(tokens(past, seed), slots(past), cache)
    return cache


def passes_of(model, trees: Sequence[Sequence[int]] = TREES) -> list[ScorePass]:
    return [
        ScorePass(tokens(len(tree), seed), np.array(tree, dtype=np.int32), cache_of(model, past, seed))
        for seed, (tree, past) in enumerate(zip(trees, PASTS, strict=True))
    ]


def test_in_every_family_trees_scored_together_have_the_bits_of_each_alone(model):
    together = model.score_together(passes := passes_of(model))
    for logits, each, other in zip(together, passes, passes_of(model), strict=True):
        count = len(each.tokens)
        alone = model.score(other.tokens, other.parents, other.cache)
        np.testing.assert_array_equal(rows_of(logits, count), rows_of(alone, count))
        assert logits.argmax().tolist() == alone.argmax().tolist()
        assert (logits.pass_rows, alone.pass_rows) == (sum(map(len, TREES)), count)

        for cache in (each.cache, other.cache):  # what is committed is what the next pass sees
            cache.commit([0])
        after = [rows_of(model.score(tokens(4, 9), chain(4), cache), 4) for cache in (each.cache, other.cache)]
        np.testing.assert_array_equal(*after)


def test_logits_that_are_skipped_change_no_other_ones(model):
    skipped = [len(tree) // 2 for tree in TREES]
    passes = [replace(each, skipped=first) for each, first in zip(passes_of(model), skipped, strict=True)]
    for logits, first, each, other in zip(
        model.score_together(passes), skipped, passes_of(model), passes_of(model), strict=True
    ):
        count = len(each.tokens)
        expected = rows_of(model.score(each.tokens, each.parents, each.cache), count)[first:]
        np.testing.assert_array_equal(rows_of(logits, count - first), expected)
        alone = model.score(other.tokens, other.parents, other.cache, skipped=first)
        np.testing.assert_array_equal(rows_of(alone, count - first), expected)
        assert (logits.pass_rows, alone.pass_rows) == (sum(map(len, TREES)), count)
        assert len(logits.argmax()) == count - first


def test_kept_rows_of_one_cache_do_not_change_another(model):
    passes = passes_of(model)
    for each in passes[1::2]:
        model.score(tokens(3, 5), chain(3), each.cache)
        each.cache.keep([0, 1])
    expected = []
    for each in passes:
        expected.append(rows_of(model.score(each.tokens, each.parents, each.cache), len(each.tokens)))
        each.cache.keep(range(each.cache.kept))
    for logits, rows in zip(model.score_together(passes), expected, strict=True):
        np.testing.assert_array_equal(rows_of(logits, len(rows)), rows)


def test_more_rows_than_a_pass_has_are_scored_in_several(model):
    trees = [chain(MAX_ROWS - 100).tolist(), chain(99).tolist(), [-1], [-1], chain(MAX_ROWS).tolist()]
    together = model.score_together(passes_of(model, trees))
    assert [logits.pass_rows for logits in together] == [MAX_ROWS, MAX_ROWS, MAX_ROWS, 1, MAX_ROWS]
    for logits, each in zip(together, passes_of(model, trees), strict=True):
        alone = model.score(each.tokens, each.parents, each.cache)
        np.testing.assert_array_equal(rows_of(logits, 1), rows_of(alone, 1))


def test_a_pass_that_cannot_be_computed_leaves_every_cache_as_it_was(model):
    *passes, wide = passes_of(model, [*TREES[:4], chain(MAX_ROWS + 1).tolist()])
    with pytest.raises(ModelError, match=f"at most {MAX_ROWS}"):
        model.score_together([wide])
    full = ScorePass(tokens(9), chain(9), model.new_cache(4))
    with pytest.raises(ModelError, match="slots are needed"):
        model.score_together([*passes, full])
    assert [len(each.cache.parents) for each in passes] == [0] * len(passes)
