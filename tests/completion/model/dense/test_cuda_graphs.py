"""Steps in fixed shapes, without capture on a CPU, give the logits of the plain decoder."""

import gc
import weakref

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from completion.model.architecture import read_architecture
from completion.model.dense import cuda_graphs
from completion.model.dense.cuda_graphs import GraphedTransformer
from completion.model.dense.dense_transformer import DenseTransformer
from completion.model.dense.weights import read_weights
from tests.completion.model.rows import rows_of

TOLERANCE = 5e-4  # float32 with products of other shapes


NODES = (np.array([5, 6], dtype=np.int32), np.array([-1, 0], dtype=np.int32))


@pytest.fixture(scope="module", params=[False, True], ids=["exact cache", "cache in 8 bits"])
def both(tiny_qwen, request):
    architecture = read_architecture(tiny_qwen[0])
    weights = read_weights(tiny_qwen[0], architecture, torch.float32)
    return [kind(architecture, weights, int8_cache=request.param) for kind in (DenseTransformer, GraphedTransformer)]


@pytest.fixture(autouse=True)
def short_spans(monkeypatch):
    monkeypatch.setattr(cuda_graphs, "SPAN_SLOTS", 64)


def filled(model, past):
    cache = model.new_cache(200)
    model.prefill(past, np.arange(len(past), dtype=np.int32), cache)
    return cache


@pytest.mark.parametrize("length", [1, 60, 64, 130])
@pytest.mark.parametrize("rows", [1, 2, 3, 17, 64])
def test_padded_trees_give_the_logits_of_the_plain_decoder(both, rows, length):
    rng = np.random.default_rng(rows)
    past, nodes = (rng.integers(0, 384, count).astype(np.int32) for count in (length, rows))
    parents = np.array([rng.integers(-1, i) if i else -1 for i in range(rows)], dtype=np.int32)
    plain, graphed = (model.score(nodes, parents, filled(model, past)) for model in both)
    for row in range(rows):
        np.testing.assert_allclose(graphed.row(row), plain.row(row), atol=TOLERANCE)
    np.testing.assert_array_equal(graphed.argmax(), plain.argmax())
    skipped = both[1].score(nodes, parents, filled(both[1], past), skipped=rows // 2)
    np.testing.assert_array_equal(skipped.argmax(), graphed.argmax()[rows // 2 :])


def test_steps_after_a_commit_give_the_logits_of_the_plain_decoder(both):
    past = np.arange(50, dtype=np.int32)
    found = []
    for model in both:
        cache = filled(model, past)
        for nodes, path in (([5, 6, 7], [0, 2]), ([8, 9, 1], [0, 1]), ([3], [0])):
            parents = np.array([-1, 0, 0][: len(nodes)], dtype=np.int32)
            model.score(np.array(nodes, dtype=np.int32), parents, cache)
            cache.commit(path)
        found.append(model.score(np.array([4], dtype=np.int32), np.array([-1], dtype=np.int32), cache).row(0))
    np.testing.assert_allclose(found[1], found[0], atol=TOLERANCE)


def prefilled(model, cache):
    length = cache.length
    model.prefill(np.arange(5, dtype=np.int32), np.arange(length, length + 5, dtype=np.int32), cache)


def moved(_model, cache):
    cache.rearrange(np.concatenate((np.arange(20, cache.length), np.arange(20))).astype(np.int32))


def grown(_model, cache):
    cache.reserve(190)


def superposed(model, cache):
    model.superpose(np.array([[3, 4]], dtype=np.int32), np.array([[0.5, 0.5]], np.float32), NODES[1][:1], cache)


def committed_again(model, cache):
    model.score(np.array([9, 8, 7], dtype=np.int32), np.array([-1, -1, 1], dtype=np.int32), cache)
    cache.commit([1, 2])


def regrown(model, cache):
    cache.reopen(cache.length - 3)
    cache.keep([0, 1])


@pytest.mark.parametrize("work", [prefilled, moved, grown, superposed, committed_again, regrown])
@pytest.mark.parametrize("most_moves", [64, 1], ids=["left to the next step", "done at once"])
def test_accepted_rows_are_in_their_slots_whatever_comes_next(both, monkeypatch, work, most_moves):
    monkeypatch.setattr(cuda_graphs, "MAX_MOVES", most_moves)
    found, past = [], np.arange(50, dtype=np.int32)
    for model in both:
        cache = filled(model, past)
        model.score(np.array([5, 6, 7, 8], dtype=np.int32), np.array([-1, 0, 0, 2], dtype=np.int32), cache)
        cache.commit([0, 2, 3])
        work(model, cache)
        found.append(model.score(*NODES, cache).row(1))
    np.testing.assert_allclose(found[1], found[0], atol=TOLERANCE)


NAMES = ("_local_scalar_dense", "item", "is_nonzero", "nonzero", "masked_select", "unique_dim")
WAITS = {f"aten::{name}" for name in NAMES}


class Waits(TorchDispatchMode):
    """Notes operators whose result's shape or value the processor has to wait for."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.name()
        if name in WAITS:
            self.found.append(name)
        return func(*args, **(kwargs or {}))


def test_nothing_of_a_step_waits_for_the_device(both):
    """A captured graph could not hold it."""
    _, graphed = both
    cache = filled(graphed, np.arange(50, dtype=np.int32))
    graphed.score(*NODES, cache)
    cache.commit([0])
    *_, step = graphed.steps.values()
    with torch.inference_mode(), Waits() as waits:
        step._compute(cache)
    assert waits.found == []


def test_a_prefill_ends_when_the_device_has_computed_it(both):
    """A prompt's budget follows the time of its chunks."""
    for model in both:
        with Waits() as waits:
            filled(model, np.arange(50, dtype=np.int32))
        assert waits.found == ["aten::item"]


@pytest.mark.parametrize("most_kept", [(0, 8, 64), (0, 8)], ids=["in fixed shapes", "beyond them"])
def test_branches_that_grow_on_kept_rows_give_the_logits_of_the_plain_decoder(both, monkeypatch, most_kept):
    monkeypatch.setattr(cuda_graphs, "MAX_KEPT", most_kept)
    found, past = [], np.arange(60, dtype=np.int32)
    for model in both:
        cache, rng = filled(model, past), np.random.default_rng(4)
        model.score(rng.integers(0, 384, 4).astype(np.int32), np.array([-1, 0, -1, -1], dtype=np.int32), cache)
        cache.keep([0, 1, 3])
        tips = [1, 2]  # a branch of two rows, and one of one
        for _ in range(5):
            tree = np.array([tips[0], tips[1], cache.kept, cache.kept + 1, tips[0]], dtype=np.int32)
            logits = model.score(rng.integers(0, 384, 5).astype(np.int32), tree, cache)
            found.append(rows_of(logits, 5))
            kept = cache.kept
            cache.keep([*range(kept), kept, kept + 1, kept + 2, kept + 3])
            tips = [kept + 2, kept + 3]
        cache.commit([0, 1, 3, 5])
        found.append(model.score(*NODES, cache).row(1)[None])
    for plain, graphed in zip(found[:6], found[6:], strict=True):
        np.testing.assert_allclose(graphed, plain, atol=TOLERANCE)


def test_a_tree_at_the_end_of_the_cache_has_room_for_its_padding(both):
    _, graphed = both
    cache = graphed.new_cache(70)
    graphed.prefill(np.arange(65, dtype=np.int32), np.arange(65, dtype=np.int32), cache)
    logits = graphed.score(np.arange(5, dtype=np.int32), np.full(5, -1, dtype=np.int32), cache)
    assert np.isfinite(logits.row(4)).all()


def test_a_cache_that_grows_leaves_the_steps_captured_on_its_old_tensors(both):
    """A captured graph would continue to read the old memory."""
    found, steps = [], []
    for model in both:
        cache = model.new_cache(400)
        for start in range(0, 300, 100):  # grows at 300 slots
            model.prefill(np.arange(100, dtype=np.int32), np.arange(start, start + 100, dtype=np.int32), cache)
            found.append(model.score(*NODES, cache).row(1))
            steps.append(next(reversed(both[1].steps.values()), None))
    assert len(set(steps[3:])) == 3
    for plain, graphed in zip(found[:3], found[3:], strict=True):
        np.testing.assert_allclose(graphed, plain, atol=TOLERANCE)


def test_growth_within_the_allocated_spans_keeps_the_captured_steps(both, monkeypatch):
    monkeypatch.setattr(cuda_graphs, "SPAN_SLOTS", 1024)
    _, graphed = both
    cache = filled(graphed, np.arange(50, dtype=np.int32))
    graphed.score(*NODES, cache)
    captured, slots = next(reversed(graphed.steps.values())), cache.slots
    cache.capacity = 600
    cache.reserve(slots + 1)
    graphed.score(*NODES, cache)
    assert cache.slots > slots
    assert next(reversed(graphed.steps.values())) is captured


def logits_in_memory(vocabulary):
    gc.collect()
    found = (each for each in gc.get_objects() if type(each) is torch.Tensor and each.shape[1:] == (vocabulary,))
    return sum(each.nbytes for each in {each.data_ptr(): each for each in found}.values())


def test_however_many_documents_there_are_few_steps_stay_and_none_holds_logits(both, monkeypatch):
    monkeypatch.setattr(cuda_graphs, "MAX_STEPS", 5)
    plain, graphed = both
    graphed.steps.clear()  # those of other tests
    past, vocabulary = np.arange(50, dtype=np.int32), graphed.shape.vocabulary_size
    caches, others = [filled(graphed, past) for _ in range(4)], filled(plain, past)
    before = logits_in_memory(vocabulary)
    for _ in range(2):
        for cache in caches:
            for rows in (1, 2, 4, 8):
                nodes, parents = np.arange(rows, dtype=np.int32), np.arange(-1, rows - 1, dtype=np.int32)
                found, expected = (each.score(nodes, parents, of) for each, of in ((graphed, cache), (plain, others)))
                np.testing.assert_allclose(found.row(rows - 1), expected.row(rows - 1), atol=TOLERANCE)
    del found, expected
    assert len(graphed.steps) <= 5
    assert logits_in_memory(vocabulary) == before


def test_an_unused_cache_is_freed_whatever_steps_it_had(both):
    _, graphed = both
    cache = graphed.new_cache(70)
    graphed.score(*NODES, cache)
    keys = weakref.ref(cache.store.tensors["keys"])
    del cache
    assert keys() is None
