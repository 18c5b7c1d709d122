"""A cache for which there is no memory stays as it was, and serves the next request."""

import errno
import mmap
from itertools import count

import numpy as np
import pytest

from completion.errors import ModelError
from completion.model.int8.packed_weights import load_packed
from completion.model.int8.quantized import QuantizedTransformer
from completion.model.transformer import has_int8_instructions
from tests.completion.model.rows import chain, rows_of, slots, tokens

pytestmark = pytest.mark.skipif(not has_int8_instructions(), reason="this processor lacks AVX2")


@pytest.fixture(scope="module")
def qwen(tiny_qwen, tmp_path_factory):
    return QuantizedTransformer(load_packed(tiny_qwen[0], tmp_path_factory.mktemp("packed")), 2)


class MemoryFor:
    """Gives the first `allocations` maps of memory, as a system that then has no more."""

    def __init__(self, allocations):
        self.left, self.map = allocations, mmap.mmap

    def __call__(self, *size, **options):
        if not self.left:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        self.left -= 1
        return self.map(*size, **options)


@pytest.mark.parametrize("before", ["a prefill", "shrink", "compress"])
def test_after_a_failed_allocation_the_next_request_finds_its_past_and_enough_slots(qwen, before, monkeypatch):
    past, nodes = tokens(60), tokens(12, seed=1)

    def filled():
        cache = qwen.new_cache(512)
        qwen.prefill(past, slots(60), cache)
        getattr(cache, before, lambda: None)()
        return cache

    def logits_after(cache):
        cache.reserve(400)
        assert cache.slots <= cache.view.plain_keys.shape[2]
        return rows_of(qwen.score(nodes, chain(12), cache), 12)

    expected = logits_after(filled())
    for allocations in count():
        cache = filled()
        with monkeypatch.context() as patch:
            patch.setattr(mmap, "mmap", MemoryFor(allocations))
            try:
                cache.reserve(400)
            except ModelError:
                failed = True
            else:
                failed = False
        np.testing.assert_array_equal(logits_after(cache), expected)
        if not failed:
            break
    assert allocations > 1


def test_shrinking_without_memory_for_the_smaller_arrays_leaves_the_larger_ones(qwen, monkeypatch):
    cache = qwen.new_cache(512)
    cache.reserve(400)
    qwen.prefill(tokens(60), slots(60), cache)
    with monkeypatch.context() as patch:
        patch.setattr(mmap, "mmap", MemoryFor(0))
        with pytest.raises(ModelError, match="no memory"):
            cache.shrink()
    assert 400 <= cache.slots <= cache.view.plain_keys.shape[2]
