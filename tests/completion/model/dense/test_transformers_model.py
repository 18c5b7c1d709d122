"""The transformers backend gives the logits of transformers itself, with our own cache."""

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from completion.errors import ModelError, UnsupportedModelError
from completion.model.dense.transformers_model import TransformersModel

TOLERANCE = 1e-4  # float32 with sums in another order; logits are of the order of 10


@pytest.fixture(scope="module", params=["qwen2", "llama"])
def model_and_module(request, tiny_qwen2, tiny_llama):
    folder = {"qwen2": tiny_qwen2, "llama": tiny_llama}[request.param]
    return TransformersModel.load(folder), AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


@pytest.fixture(scope="module")
def model(tiny_qwen2):
    return TransformersModel.load(tiny_qwen2)


def some_tokens(count, seed=0):
    return np.random.default_rng(seed).integers(0, 590, count).astype(np.int32)


def slots(start, end):
    return np.arange(start, end, dtype=np.int32)


def fresh_logits(module, tokens):
    """Return the logits of every row of a plain forward pass without a cache."""
    with torch.inference_mode():
        return module(torch.from_numpy(tokens.astype(np.int64))[None]).logits[0].numpy()


def rows_of(logits, count):
    return np.stack([logits.row(row) for row in range(count)])


def test_prefill_gives_the_logits_of_a_plain_forward_pass(model_and_module):
    model, module = model_and_module
    tokens = some_tokens(300)  # more than one chunk
    every = fresh_logits(module, tokens)
    for rows in ([299, 0, 128], [299, 298, 128, 0], [7, 3, 280, 5]):
        logits = model.prefill(tokens, slots(0, 300), model.new_cache(300), rows)
        np.testing.assert_allclose(rows_of(logits, len(rows)), every[rows], atol=TOLERANCE)


def test_each_branch_of_a_tree_is_scored_as_if_it_were_alone(model_and_module):
    model, module = model_and_module
    past, nodes = some_tokens(40), some_tokens(6, seed=1)
    parents = np.array([-1, 0, 0, 1, 2, -1], dtype=np.int32)
    cache = model.new_cache(64)
    model.prefill(past, slots(0, 40), cache)
    logits = model.score(nodes, parents, cache)
    for leaf, path in {3: [0, 1, 3], 4: [0, 2, 4], 5: [5]}.items():
        expected = fresh_logits(module, np.concatenate([past, nodes[path]]))[-1]
        np.testing.assert_allclose(logits.row(leaf), expected, atol=TOLERANCE)


def test_a_committed_path_becomes_the_past(model_and_module):
    model, module = model_and_module
    past, nodes = some_tokens(20), some_tokens(4, seed=2)
    cache = model.new_cache(40)
    model.prefill(past, slots(0, 20), cache)
    model.score(nodes, np.array([-1, 0, 0, 2], dtype=np.int32), cache)
    cache.commit([0, 2, 3])
    assert cache.length == 23
    following = model.score(some_tokens(1, seed=3), np.array([-1], dtype=np.int32), cache)
    whole = np.concatenate([past, nodes[[0, 2, 3]], some_tokens(1, seed=3)])
    np.testing.assert_allclose(following.row(0), fresh_logits(module, whole)[-1], atol=TOLERANCE)


def test_a_tree_that_is_not_committed_does_not_change_later_results(model):
    cache, tokens = model.new_cache(30), some_tokens(10)
    model.prefill(tokens, slots(0, 10), cache)
    alone = model.score(tokens[:1], np.array([-1], dtype=np.int32), cache).row(0).copy()
    model.score(some_tokens(8, seed=4), slots(-1, 7), cache)
    again = model.score(tokens[:1], np.array([-1], dtype=np.int32), cache).row(0)
    np.testing.assert_array_equal(alone, again)


def test_keys_moved_a_thousand_times_equal_computed_keys_of_their_last_position(model):
    tokens = some_tokens(30)
    moved, fresh = model.new_cache(64), model.new_cache(64)
    model.prefill(tokens, slots(0, 30), moved)
    for _ in range(500):
        moved.rearrange(np.concatenate([[-1, -1, -1], slots(0, 30)]).astype(np.int32))
        moved.rearrange(slots(3, 33))
    moved.rearrange(np.concatenate([[-1, -1], slots(0, 30)]).astype(np.int32))
    model.prefill(np.concatenate([tokens[:2], tokens]), slots(0, 32), fresh)
    for slot in range(2, 32):  # in the first layer a key depends on its token and position alone
        torch.testing.assert_close(moved.key(0, slot), fresh.key(0, slot), atol=TOLERANCE, rtol=0)


def test_two_runs_of_slots_change_sides(model):
    tokens = some_tokens(20)
    cache, fresh = model.new_cache(32), model.new_cache(32)
    model.prefill(tokens, slots(0, 20), cache)
    cache.rearrange(np.concatenate([slots(12, 20), slots(0, 12)]))
    model.prefill(np.concatenate([tokens[12:], tokens[:12]]), slots(0, 20), fresh)
    for slot in range(20):
        torch.testing.assert_close(cache.key(0, slot), fresh.key(0, slot), atol=TOLERANCE, rtol=0)


FAMILIES = {  # families without a built-in forward pass: whether cached keys can be moved
    "starcoder2": True,
    "granite": True,
    "stablelm": True,  # only some channels of a head are rotated
    "cohere": False,  # pairs are neighbouring channels
}


@pytest.mark.parametrize("family", FAMILIES)
def test_other_families_run_and_move_keys_or_refuse_to_move_them(family):
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "vocab_size": 128}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "initializer_range": 0.2}
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    config = AutoConfig.for_model(family, **sizes, **heads, **special, max_position_embeddings=64)
    module = AutoModelForCausalLM.from_config(config).float().eval()
    model, tokens = TransformersModel(module), some_tokens(20) % 128
    cache, fresh = model.new_cache(32), model.new_cache(32)
    logits = model.prefill(tokens, slots(0, 20), cache, [19])
    np.testing.assert_allclose(logits.row(0), fresh_logits(module, tokens)[19], atol=TOLERANCE)
    shifted = np.concatenate([[-1, -1], slots(0, 20)]).astype(np.int32)
    if not FAMILIES[family]:
        with pytest.raises(UnsupportedModelError, match="exact"):
            cache.rearrange(shifted)
        return
    cache.rearrange(shifted)
    model.prefill(np.concatenate([tokens[:2], tokens]), slots(0, 22), fresh)
    for slot in range(2, 22):
        torch.testing.assert_close(cache.key(0, slot), fresh.key(0, slot), atol=TOLERANCE, rtol=0)


def test_a_family_without_rotary_positions_refuses_to_move_keys():
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=64, n_positions=64, n_embd=32, n_layer=1, n_head=2)
    model = TransformersModel(GPT2LMHeadModel(config).eval())
    cache = model.new_cache(16)
    model.prefill(slots(0, 4), slots(0, 4), cache)
    with pytest.raises(UnsupportedModelError, match="exact"):
        cache.rearrange(slots(1, 4))


def test_too_many_tokens_for_the_cache_are_refused(model):
    with pytest.raises(ModelError, match="5 slots are needed"):
        model.prefill(slots(0, 5), slots(0, 5), model.new_cache(4))


def test_a_folder_without_a_model_is_a_model_error(tmp_path):
    with pytest.raises(ModelError, match="transformers cannot load"):
        TransformersModel.load(tmp_path)


RECURRENT = {
    "mamba": {"state_size": 4, "num_hidden_layers": 1},
    "lfm2": {"num_hidden_layers": 2, "layer_types": ["conv", "full_attention"], "num_attention_heads": 2},
}


@pytest.mark.parametrize("family", RECURRENT)
def test_a_family_whose_layers_cache_something_else_is_refused_by_its_name(family, tmp_path):
    config = AutoConfig.for_model(family, vocab_size=64, hidden_size=32, **RECURRENT[family])
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    with pytest.raises(UnsupportedModelError, match=f"'{family}' models"):
        TransformersModel.load(tmp_path)


def test_a_tree_that_grows_over_several_scores_gives_the_logits_of_one_score(model):
    grown, at_once = model.new_cache(32), model.new_cache(32)
    ids, parents = np.arange(3, 9, dtype=np.int32), np.array([-1, 0, -1, 1, 2, 3], dtype=np.int32)
    expected = model.score(ids, parents, at_once)
    for row in range(6):
        found = model.score(ids[row : row + 1], parents[row : row + 1], grown)
        np.testing.assert_allclose(found.row(0), expected.row(row), atol=1e-4)
        grown.keep(range(row + 1))
    grown.commit([0, 1, 3, 5])
    grown.reopen(1)
    assert (grown.length, grown.kept) == (1, 3)
