"""Our forward pass gives the logits of transformers: prefills, draft trees, committed paths, moved keys."""

import numpy as np
import pytest
import torch

from completion.errors import ModelError
from completion.model.transformer import load_transformer
from tests.completion.model.rows import chain, rows_of, slots, tokens

TOLERANCE = 5e-4  # float32 with sums in another order; logits are of the order of 10


@torch.no_grad()
def reference(module, ids):
    return module(torch.from_numpy(ids.astype(np.int64))[None]).logits[0].numpy()


def test_prefill_gives_the_logits_of_transformers(tiny):
    folder, module = tiny
    model, ids = load_transformer(folder, "fp32"), tokens(70)
    ours = model.prefill(ids, slots(70), model.new_cache(128), range(70))
    np.testing.assert_allclose(rows_of(ours, 70), reference(module, ids), atol=TOLERANCE)


def test_steps_after_a_prefill_give_the_logits_of_transformers(tiny):
    folder, module = tiny
    model, ids = load_transformer(folder, "fp32"), tokens(40)
    cache = model.new_cache(64)
    model.prefill(ids[:20], slots(20), cache)
    found = []
    for start, count in ((20, 1), (21, 3), (24, 16)):
        found.append(rows_of(model.score(ids[start : start + count], chain(count), cache), count))
        cache.commit(range(count))
    np.testing.assert_allclose(np.concatenate(found), reference(module, ids)[20:], atol=TOLERANCE)
    assert cache.length == 40


def test_a_node_of_a_tree_sees_its_ancestors_only(tiny):
    folder, module = tiny
    model, past, nodes = load_transformer(folder, "fp32"), tokens(30), tokens(7, seed=1)
    cache = model.new_cache(64)
    model.prefill(past, slots(30), cache)
    parents = np.array([-1, 0, 0, 1, -1, 4, 2], dtype=np.int32)
    scored = model.score(nodes, parents, cache)
    for path in ([0, 1, 3], [0, 2, 6], [4, 5]):
        expected = reference(module, np.concatenate([past, nodes[path]]))[-1]
        np.testing.assert_allclose(scored.row(path[-1]), expected, atol=TOLERANCE)


def test_the_logits_of_first_rows_can_be_skipped(tiny_qwen):
    model, nodes, parents = load_transformer(tiny_qwen[0], "fp32"), tokens(5), np.array([-1, 0, 1, 1, 2], np.int32)
    whole = rows_of(model.score(nodes, parents, model.new_cache(16)), 5)
    found = model.score(nodes, parents, model.new_cache(16), skipped=2)
    np.testing.assert_array_equal(rows_of(found, 3), whole[2:])
    assert (found.argmax().tolist(), found.pass_rows) == (whole[2:].argmax(axis=1).tolist(), 5)


def test_a_committed_path_becomes_the_past(tiny_qwen):
    folder, module = tiny_qwen
    model, past, nodes = load_transformer(folder, "fp32"), tokens(30), tokens(6, seed=1)
    cache = model.new_cache(64)
    model.prefill(past, slots(30), cache)
    model.score(nodes, np.array([-1, 0, 0, -1, 2, 4], dtype=np.int32), cache)
    cache.commit([0, 2, 4])
    after = model.score(nodes[:1], chain(1), cache).row(0)
    whole = np.concatenate([past, nodes[[0, 2, 4]], nodes[:1]])
    np.testing.assert_allclose(after, reference(module, whole)[-1], atol=TOLERANCE)
    assert cache.length == 33


def test_rows_that_are_no_path_cannot_be_committed(tiny_qwen):
    model = load_transformer(tiny_qwen[0], "fp32")
    cache = model.new_cache(16)
    model.score(tokens(3), np.array([-1, 0, 0], dtype=np.int32), cache)
    with pytest.raises(ValueError, match="no path"):
        cache.commit([0, 1, 2])


def test_a_tree_that_is_not_committed_does_not_change_later_results(tiny_qwen):
    model, ids = load_transformer(tiny_qwen[0], "fp32"), tokens(20)
    cache = model.new_cache(64)
    model.prefill(ids, slots(20), cache)
    before = model.score(ids[:1], chain(1), cache).row(0).copy()
    model.score(tokens(30, seed=3), chain(30), cache)
    np.testing.assert_array_equal(model.score(ids[:1], chain(1), cache).row(0), before)


def test_a_prefill_in_chunks_gives_the_logits_of_one_prefill(tiny_qwen):
    model, ids = load_transformer(tiny_qwen[0], "fp32"), tokens(300)
    at_once, in_chunks = model.new_cache(320), model.new_cache(320)
    expected = model.prefill(ids, slots(300), at_once, [299]).row(0)
    for start in range(0, 300, 100):
        logits = model.prefill(ids[start : start + 100], slots(100, start), in_chunks, [99])
    np.testing.assert_allclose(logits.row(0), expected, atol=TOLERANCE)


def test_moved_keys_equal_computed_keys_of_the_new_positions_in_the_first_layer(tiny_qwen):
    """Keys of later layers also depend on earlier tokens; those of the first layer only on token and position."""
    model, ids = load_transformer(tiny_qwen[0], "fp32"), tokens(60)
    cache = model.new_cache(128)
    model.prefill(ids, slots(60), cache)
    sources = np.concatenate([slots(10), np.full(7, -1), slots(20, 40), slots(30, 10)]).astype(np.int32)
    for _ in range(1000):  # there and back: no error may add up
        cache.rearrange(np.concatenate([slots(10), slots(50, 10)]))
    cache.rearrange(sources)
    fresh = model.new_cache(128)
    model.prefill(ids[np.where(sources < 0, 0, sources)], slots(67), fresh)
    kept = sources >= 0
    np.testing.assert_allclose(
        cache.store.tensors["keys"][0][:, :67][:, kept], fresh.store.tensors["keys"][0][:, :67][:, kept], atol=1e-4
    )
    assert cache.length == 67


def test_a_run_in_the_middle_is_recomputed_exactly(tiny_qwen):
    """Recomputing the end of a text, as a repair does, gives what a prefill of the whole text gives."""
    model, ids = load_transformer(tiny_qwen[0], "fp32"), tokens(50)
    cache = model.new_cache(64)
    model.prefill(ids, slots(50), cache)
    wrong = ids.copy()
    wrong[[10, 11, 30]] = 1
    damaged = model.new_cache(64)
    model.prefill(wrong, slots(50), damaged)
    again = np.arange(10, 50, dtype=np.int32)
    repaired = model.prefill(ids[10:], again, damaged, [39]).row(0)
    np.testing.assert_allclose(repaired, model.prefill(ids[49:], slots(1, 49), cache, [0]).row(0), atol=TOLERANCE)
    assert damaged.length == 50


def test_too_many_tokens_for_the_cache_are_refused(tiny_qwen):
    model = load_transformer(tiny_qwen[0], "fp32")
    with pytest.raises(ModelError, match="slots are needed"):
        model.prefill(tokens(20), slots(20), model.new_cache(16))


def test_bfloat16_is_near_float32(tiny_qwen):
    folder, module = tiny_qwen
    model, ids = load_transformer(folder, "bf16"), tokens(40)
    ours = rows_of(model.prefill(ids, slots(40), model.new_cache(64), range(40)), 40)
    expected = reference(module, ids)
    assert np.abs(ours - expected).mean() < 0.1 * np.abs(expected).mean()


def test_a_tree_that_grows_over_several_scores_gives_the_logits_of_each_path(tiny):
    """Kept rows serve later rows as if the path had been scored at once."""
    folder, module = tiny
    model, past, nodes = load_transformer(folder, "fp32"), tokens(30), tokens(8, seed=1)
    cache = model.new_cache(64)
    model.prefill(past, slots(30), cache)
    model.score(nodes[:4], np.array([-1, 0, 0, -1], dtype=np.int32), cache)
    cache.keep([0, 2, 3])
    model.score(nodes[4:6], np.array([1, 2], dtype=np.int32), cache)  # below nodes 2 and 3
    cache.keep([0, 1, 2, 4])  # nodes 0, 2, 3, 5
    scored = model.score(nodes[6:], np.array([3, 1], dtype=np.int32), cache)  # below nodes 5 and 2
    for row, path in enumerate(([3, 5, 6], [0, 2, 7])):
        np.testing.assert_allclose(
            scored.row(row), reference(module, np.concatenate([past, nodes[path]]))[-1], atol=TOLERANCE
        )
    cache.commit([0, 1, 5])
    assert (cache.length, cache.kept) == (33, 0)
    whole = np.concatenate([past, nodes[[0, 2, 7]], nodes[:1]])
    np.testing.assert_allclose(
        model.score(nodes[:1], chain(1), cache).row(0), reference(module, whole)[-1], atol=TOLERANCE
    )


def test_reopened_slots_are_kept_rows_that_can_branch(tiny_qwen):
    folder, module = tiny_qwen
    model, ids = load_transformer(folder, "fp32"), tokens(30)
    cache = model.new_cache(64)
    model.prefill(ids, slots(30), cache)
    cache.reopen(25)
    assert (cache.length, cache.kept) == (25, 5)
    other = model.score(ids[:1], np.array([1], dtype=np.int32), cache).row(0)  # below the second of them
    np.testing.assert_allclose(other, reference(module, np.append(ids[:27], ids[:1]))[-1], atol=TOLERANCE)
    cache.commit(range(5))
    again = model.score(ids[:1], chain(1), cache).row(0)
    np.testing.assert_allclose(again, reference(module, np.append(ids, ids[:1]))[-1], atol=TOLERANCE)


def test_rows_cannot_be_kept_without_their_parents(tiny_qwen):
    cache = (model := load_transformer(tiny_qwen[0], "fp32")).new_cache(16)
    model.score(tokens(4), np.array([-1, 0, 1, 0], dtype=np.int32), cache)
    for rows in ([0, 2], [1, 0], [3]):
        with pytest.raises(ValueError, match="lack a parent"):
            cache.keep(rows)
