"""Models with weights in 8 and 4 bits, and with a cache in 8 bits, predict nearly what the float32 model predicts."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from completion.model.architecture import read_architecture
from completion.model.dense.dense_transformer import DenseTransformer
from completion.model.dense.quantized_linear import GROUP
from completion.model.dense.weights import Linear, read_weights
from tests.completion.model.rows import chain, rows_of, slots, tokens

BOUNDS = {("plain", True): 0.08, ("int8", False): 0.25}
"""Largest error of all logits together, as a share of the logits, in three layers of large random weights."""


def loaded(folder, kind="plain", int8_cache=False):
    architecture = read_architecture(folder)
    weights = read_weights(folder, architecture, torch.float32, "cpu", kind)
    return DenseTransformer(architecture, weights, int8_cache=int8_cache)


def logits_of(model, ids):
    cache = model.new_cache(128)
    found = [rows_of(model.prefill(ids[:50], slots(50), cache, range(50)), 50)]
    found.append(rows_of(model.score(ids[50:], chain(len(ids) - 50), cache), len(ids) - 50))
    return np.concatenate(found)


def error_of(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected - expected.mean(1, keepdims=True))


@pytest.mark.parametrize("form", BOUNDS)
def test_rounded_models_of_every_family_stay_within_the_bound(tiny, form):
    folder, _ = tiny
    ids = tokens(70)
    assert 0 < error_of(logits_of(loaded(folder, *form), ids), logits_of(loaded(folder), ids)) < BOUNDS[form]


def test_4_bits_of_every_family_give_the_logits_of_their_rounded_matrices(tiny):
    rounded, ids = loaded(tiny[0], "q4"), tokens(70)
    expected = logits_of(DenseTransformer(rounded.architecture, widened(rounded.weights)), ids)
    assert error_of(logits_of(rounded, ids), expected) < 5e-3  # the head rounds its input: some values to either side


def widened(weights):
    """Return the weights with plain matrices of 4-bit values; embeddings and head stay in 8 bits."""

    def plain(linear):
        width = linear.scales.shape[0] * GROUP
        return Linear(replace(linear, bias=None)(torch.eye(width)).T.contiguous(), linear.bias)

    parts = ("qkv", "attention_out", "up", "down")
    layers = [replace(layer, **{part: plain(getattr(layer, part)) for part in parts}) for layer in weights.layers]
    return replace(weights, layers=tuple(layers))


@pytest.fixture(scope="module")
def model(tiny_qwen):
    return loaded(tiny_qwen[0], int8_cache=True)


def test_a_node_of_a_tree_has_the_logits_of_its_path_in_a_cache_of_8_bits(model):
    """A node's position is not its slot, so its key must be turned by the former."""
    past, nodes = tokens(30), tokens(7, seed=1)
    cache = model.new_cache(64)
    model.prefill(past, slots(30), cache)
    scored = model.score(nodes, np.array([-1, 0, 0, 1, -1, 4, 2], dtype=np.int32), cache)
    for path in ([0, 1, 3], [0, 2, 6], [4, 5]):
        alone = model.new_cache(64)
        model.prefill(past, slots(30), alone)
        expected = model.score(nodes[path], chain(len(path)), alone).row(len(path) - 1)
        np.testing.assert_allclose(scored.row(path[-1]), expected, atol=5e-4)
    cache.commit([0, 2, 6])
    after = model.score(nodes[:1], chain(1), cache).row(0)
    alone = model.new_cache(64)
    model.prefill(np.concatenate([past, nodes[[0, 2, 6]]]), slots(33), alone)
    np.testing.assert_allclose(after, model.score(nodes[:1], chain(1), alone).row(0), atol=0.05)


def test_keys_that_move_a_thousand_times_in_8_bits_are_what_they_were(model):
    cache = model.new_cache(64)
    model.prefill(tokens(60), slots(60), cache)
    before = [tensor.clone() for tensor in cache.store.read(1, 60)]
    for _ in range(500):
        cache.rearrange(np.concatenate([slots(30, 30), slots(30)]).astype(np.int32))
        cache.rearrange(np.concatenate([slots(30, 30), slots(30)]).astype(np.int32))
    for kept, found in zip(before, cache.store.read(1, 60), strict=True):
        assert torch.equal(kept, found)


def test_a_large_constant_key_channel_costs_no_accuracy_in_8_bits(tiny_qwen):
    """As Qwen2 has them: without its bias removed, such a channel would take all steps of the others."""
    folder, _ = tiny_qwen
    architecture = read_architecture(folder)
    weights = read_weights(folder, architecture, torch.float32)
    group = architecture.kv_heads * architecture.head_dim
    for layer in weights.layers:
        layer.qkv.bias[-2 * group : -group : 16] += 100.0
    ids = tokens(70)
    exact, rounded = (
        logits_of(DenseTransformer(architecture, weights, int8_cache=kind), ids) for kind in (False, True)
    )
    assert error_of(rounded, exact) < 0.08


def test_a_cache_in_8_bits_takes_little_more_than_a_third_of_the_memory(tiny_qwen):
    exact, rounded = (loaded(tiny_qwen[0], int8_cache=kind).new_cache(256) for kind in (False, True))
    for cache in (exact, rounded):
        cache.reserve(256)
    heads, width, layers = 2, 32, 3
    assert exact.size_bytes == 256 * layers * heads * 3 * 4 * width  # float32 here
    assert rounded.size_bytes == 256 * (layers * heads * 2 * (width + 4) + 8)
