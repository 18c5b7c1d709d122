"""The most exact format that fits is taken, and the reckoned memory is what the parts really take."""

import dataclasses
import sys
from types import SimpleNamespace

import pytest
import torch

from benchmarks.gpu.weights import SHAPES, random_weights
from completion.memory import trim_gpu
from completion.model.dense.dense_transformer import DenseTransformer
from completion.model.gpu_memory import CACHE_SLOTS, WORKING_BYTES, needed_bytes, plan_for

GIB = 1 << 30


@pytest.mark.parametrize(
    ("size", "memory_gib", "share", "plan"),
    [
        ("0.5B", 4, 0.8, ("plain", False)),
        ("1.5B", 4, 0.8, ("int8", False)),
        ("7B", 24, 0.8, ("plain", False)),
        ("7B", 16, 0.8, ("int8", False)),
        ("7B", 8, 0.8, ("q4", False)),
        ("7B", 8, 0.75, ("q4", True)),
    ],
)
def test_auto_takes_the_most_exact_format_that_fits(size, memory_gib, share, plan):
    found = plan_for(SHAPES[size], "auto", memory_gib * GIB, share)
    assert (found.weights, found.int8_cache, found.memory_share) == (*plan, share)


def test_no_plan_fits_where_even_the_smallest_format_is_too_large():
    assert plan_for(SHAPES["7B"], "auto", 8 * GIB, 0.5) is None
    assert plan_for(SHAPES["7B"], "bf16", 8 * GIB, 1.0) is None


@pytest.mark.parametrize("kind", ["plain", "int8", "q4"])
@pytest.mark.parametrize("int8_cache", [False, True])
def test_the_reckoned_memory_is_that_of_weights_and_cache(kind, int8_cache):
    architecture = dataclasses.replace(SHAPES["0.5B"], layers=1, vocabulary_size=512)
    weights = random_weights(architecture, torch.bfloat16, "cpu", kind)
    store = DenseTransformer(architecture, weights, int8_cache=int8_cache).store()
    store.resize(CACHE_SLOTS)
    taken = weights.step_bytes + weights.embeddings.size_bytes + store.size_bytes
    reckoned = needed_bytes(architecture, kind, int8_cache=int8_cache) - WORKING_BYTES
    assert taken == pytest.approx(reckoned, rel=0.02)


def test_freed_memory_of_a_gpu_in_use_is_returned(monkeypatch):
    returned = []
    cuda = SimpleNamespace(is_initialized=lambda: True, empty_cache=lambda: returned.append(True))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    trim_gpu()
    cuda.is_initialized = lambda: False
    trim_gpu()
    monkeypatch.delitem(sys.modules, "torch")
    trim_gpu()
    assert returned == [True]
