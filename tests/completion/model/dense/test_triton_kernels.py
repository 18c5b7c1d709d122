"""The kernels give what torch's own operators give, in Triton's interpreter, and compile for GPUs.

No GPU runs them here. `tests/conftest.py` chooses the interpreter.
"""

import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from benchmarks.gpu.weights import coder
from completion.model.architecture import read_architecture
from completion.model.dense.attention import PLAIN, Kernels, PlainAttention, Sight
from completion.model.dense.cuda_graphs import GraphedTransformer
from completion.model.dense.dense_transformer import DenseTransformer
from completion.model.dense.kernels import choice
from completion.model.dense.kernels.choice import agree, kernels_for
from completion.model.dense.kv_cache import Angles, ExactStore, Int8Store
from completion.model.dense.weights import read_weights
from tests.completion.model.rows import rows_of, slots, tokens

pytest.importorskip("triton")

from completion.model.dense.kernels import tree_attention
from completion.model.dense.kernels.tree_attention import KERNELS, KernelAttention, supported

SLOTS = 96


def architecture_of(heads=3, kv_heads=1, head_dim=32, **changes):
    return dataclasses.replace(coder(2, 64, heads, kv_heads, 64, head_dim), max_positions=512, **changes)


def filled_store(architecture, kind, seed=0):
    """Return a store whose slots all have random keys and values."""
    torch.manual_seed(seed)
    shape, angles = architecture.shape, Angles.of(architecture, "cpu")
    biases = torch.randn(shape.layers, shape.kv_heads, 1, shape.head_dim)
    store = kind(shape, torch.float32, angles, *([biases] if kind is Int8Store else []))
    store.resize(SLOTS)
    everywhere = torch.arange(SLOTS)
    for layer in range(shape.layers):
        plain, rotated, values = torch.randn(3, shape.kv_heads, SLOTS, shape.head_dim)
        store.write(layer, everywhere, everywhere, plain, rotated, values)
    return store


def tree(length, kept, rows, padding=0):
    """Return the sight of a random tree on a past, padded as a fixed shape is."""
    rng = np.random.default_rng(rows)
    parents = np.array([rng.integers(-1, i) for i in range(kept + rows)], dtype=np.int32)
    sight = Sight.of_tree(parents, kept, length, "cpu")
    padded = torch.nn.functional.pad(sight.distances, (0, padding))
    return dataclasses.replace(sight, distances=padded, span=SLOTS)


SIGHTS = {
    "one row": tree(70, 0, 1),
    "a tree": tree(50, 0, 17, padding=15),
    "branches": tree(40, 30, 5, padding=40),
    "no past": tree(0, 0, 9),
    "a prefill": Sight.of_slots(torch.arange(24), 24),
    "a prefill after a past": Sight.of_slots(torch.arange(41, 62), 62),
}


def compare(sight, architecture, kind=ExactStore):
    """Check what both attentions return, and what they wrote."""
    heads, groups, width = architecture.heads, architecture.kv_heads, architecture.head_dim
    stores = [filled_store(architecture, kind) for _ in range(2)]
    for layer in range(2):
        rows = torch.randn(len(sight.positions), heads + 2 * groups, width).transpose(0, 1)  # as projections are
        q, k, v = rows.tensor_split((heads, heads + groups))
        attentions = [make(sight, architecture) for make in (PlainAttention, KernelAttention)]
        expected, found = (attend(q, k, v, layer, store) for attend, store in zip(attentions, stores, strict=True))
        torch.testing.assert_close(found, expected, rtol=0, atol=2e-5)
    for name, tensor in stores[0].tensors.items():
        torch.testing.assert_close(stores[1].tensors[name], tensor, rtol=0, atol=2e-6, msg=name)


@pytest.mark.parametrize("kind", [ExactStore, Int8Store], ids=["exact", "8 bits"])
@pytest.mark.parametrize("name", SIGHTS)
def test_attention_is_that_of_torch(name, kind):
    compare(SIGHTS[name], architecture_of(windowed_layers=(1,), window=11), kind)


@pytest.mark.parametrize(("heads", "kv_heads", "head_dim"), [(7, 1, 64), (8, 2, 128)])
def test_every_way_of_sharing_keys_gives_the_same(heads, kv_heads, head_dim):
    compare(tree(40, 3, 5), architecture_of(heads, kv_heads, head_dim))


@pytest.mark.parametrize("programs", [1, 10_000])
def test_the_number_of_parts_does_not_change_the_sum(programs, monkeypatch):
    monkeypatch.setattr(tree_attention, "PROGRAMS", programs)
    compare(tree(80, 3, 6), architecture_of())


@pytest.mark.parametrize("int8_cache", [False, True], ids=["exact cache", "cache in 8 bits"])
def test_a_model_on_kernels_gives_the_logits_of_the_plain_decoder(tiny_qwen, int8_cache):
    """A prefill, a tree, a commit that moves rows, moved text and superposed rows."""
    architecture = read_architecture(tiny_qwen[0])
    weights = read_weights(tiny_qwen[0], architecture, torch.float32)
    nodes, parents = tokens(6, seed=1), np.array([-1, 0, 0, 1, -1, 2], dtype=np.int32)
    both = []
    for kind, kernels in ((DenseTransformer, {}), (GraphedTransformer, {"kernels": KERNELS})):
        model = kind(architecture, weights, int8_cache=int8_cache, **kernels)
        cache = model.new_cache(128)
        found = [rows_of(model.prefill(tokens(50), slots(50), cache, range(50)), 50)]
        found.append(rows_of(model.score(nodes, parents, cache), 6))
        cache.commit([0, 2, 5])
        found.append(rows_of(model.score(nodes[:3], parents[:3], cache), 3))
        cache.rearrange(np.concatenate([slots(20, 30), slots(20)]).astype(np.int32))
        found.append(rows_of(model.superpose(nodes[:, None], np.ones((6, 1), np.float32), parents, cache), 6))
        both.append(np.concatenate(found))
    differences = np.abs(both[1] - both[0]).max(axis=1)
    assert np.median(differences) < 5e-5
    # Where a sum differs in its last bit, a key or value may round to the next of 255 steps.
    assert differences.max() < (5e-3 if int8_cache else 5e-4)


@pytest.mark.parametrize("int8_cache", [False, True], ids=["exact cache", "cache in 8 bits"])
def test_kernels_that_agree_with_torch_are_told_from_others(int8_cache):
    architecture, (plain, torch_store) = architecture_of(windowed_layers=(1,), window=30), (PlainAttention, ExactStore)

    def unscaled(sight, architecture):
        return plain(sight, dataclasses.replace(architecture, attention_scale=1.0))

    class Unmoved(ExactStore):
        def turn(self, slots):
            pass

    def agreed(attention, store):
        kernels = Kernels(attention, store, prefill_rows=1, masks_span=True)
        return agree(kernels, architecture, "cpu", torch.float32, int8_cache=int8_cache)

    assert agreed(KernelAttention, KERNELS.exact_store)
    assert not agreed(unscaled, torch_store)
    assert agreed(plain, Unmoved) == int8_cache  # a cache in 8 bits rotates keys when it reads them


def test_a_machine_without_a_compiler_computes_with_torch(caplog, monkeypatch):
    def failing(*_arguments, **_options):
        raise RuntimeError("Failed to find C compiler.")

    monkeypatch.setattr(choice, "agree", failing)
    assert kernels_for(architecture_of(), "cuda", int8_cache=False) is PLAIN
    assert "Failed to find C compiler" in caplog.text
    assert kernels_for(architecture_of(), "mps", int8_cache=False) is PLAIN


@pytest.mark.parametrize(("head_dim", "fits"), [(32, True), (128, True), (96, False), (16, False), (512, False)])
def test_heads_of_other_sizes_are_left_to_torch(head_dim, fits):
    assert supported(architecture_of(head_dim=head_dim)) == fits


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_kernels_compile_for_gpus_and_fit_in_their_shared_memory():
    """In another process, because this one interprets them."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.completion.model.dense.compile_kernels"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("bytes of shared memory") == 5 * (4 * 2 + 2)
