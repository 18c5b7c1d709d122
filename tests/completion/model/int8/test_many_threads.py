"""Passes with more threads than cores, on cores that the system chose, and while they wait for work."""

import os
import threading
from pathlib import Path

import numpy as np
import pytest

from completion.model.int8.packed_weights import load_packed
from completion.model.int8.quantized import QuantizedTransformer
from completion.model.int8.worker_threads import WorkerThreads, usable_threads
from completion.model.transformer import has_int8_instructions
from tests.completion.model.int8.test_quantized import in_blocks
from tests.completion.model.rows import chain, rows_of, slots, tokens

pytestmark = pytest.mark.skipif(not has_int8_instructions(), reason="this processor lacks AVX2")
needs_affinity = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system pins no threads")
TASKS = Path("/proc/self/task")


@pytest.fixture(scope="module", params=["int8", "q4"])
def weights(request, tiny_qwen, tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    model = tiny_qwen[0] if request.param == "int8" else in_blocks(tiny_qwen[0], folder / "qwen")
    return load_packed(model, folder / "packed", request.param)


def logits(model):
    """Return the logits of a prompt, of a step with one row, and of one with several.  # [50 + 1 + 9, vocabulary]."""
    cache, ids = model.new_cache(64), tokens(50)
    found = [rows_of(model.prefill(ids, slots(50), cache, range(50)), 50)]
    found += [rows_of(model.score(ids[:count], chain(count), cache), count) for count in (1, 9)]
    return np.concatenate(found)


@pytest.fixture(scope="module")
def expected(weights):
    return logits(QuantizedTransformer(weights, 1))


@pytest.fixture
def affinity():
    """Return the cores of this process, and give them back to its main thread."""
    cores = os.sched_getaffinity(0)
    yield sorted(cores)
    os.sched_setaffinity(0, cores)


def forward_threads():
    return [one.native_id for one in threading.enumerate() if one.name.startswith("draftline-forward")]


@pytest.mark.parametrize("threads", [2, 3, 5, 8, 16, 32])
def test_the_number_of_threads_changes_no_bit(weights, expected, threads):
    np.testing.assert_array_equal(logits(QuantizedTransformer(weights, threads)), expected)


@needs_affinity
@pytest.mark.parametrize("threads", [1, 2, 7])
def test_threads_that_share_one_core_change_no_bit(weights, expected, threads, affinity):
    os.sched_setaffinity(0, affinity[:1])
    assert usable_threads() == 1
    np.testing.assert_array_equal(logits(QuantizedTransformer(weights, threads)), expected)


@needs_affinity
@pytest.mark.parametrize("on_the_first", [1, 3, 4])
def test_cores_with_unequal_numbers_of_threads_change_no_bit(weights, expected, affinity, on_the_first):
    """As where cores are unequally quick: those on a crowded one finish late."""
    before, model = set(forward_threads()), QuantizedTransformer(weights, 5)
    logits(model)
    own = [thread for thread in forward_threads() if thread not in before]
    assert own
    for number, thread in enumerate(own):
        os.sched_setaffinity(thread, {affinity[0] if number < on_the_first else affinity[-1]})
    os.sched_setaffinity(0, {affinity[-1]})
    np.testing.assert_array_equal(logits(model), expected)


def ticks(thread):
    """Return the processor time of a thread of this process, in ticks of the system."""
    fields = (TASKS / str(thread) / "stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@pytest.mark.skipif(not TASKS.exists(), reason="this system does not say the time of a thread")
def test_threads_that_wait_for_work_take_no_processor_time():
    before, pool = set(forward_threads()), WorkerThreads(8)
    gathered = threading.Barrier(8)
    pool.run(lambda _thread: gathered.wait(60))
    waiting = [thread for thread in forward_threads() if thread not in before]
    assert len(waiting) == 7
    pool.run(lambda _thread: None)
    main = threading.get_native_id()
    started, spent = ticks(main), [ticks(thread) for thread in waiting]
    while ticks(main) < started + 20:  # the time in which one that spins would have taken as much
        sum(range(10_000))
    assert sum(ticks(thread) for thread in waiting) - sum(spent) <= 1
