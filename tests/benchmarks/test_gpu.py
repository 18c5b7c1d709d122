"""The benchmarks of the GPU path: what they need, what they find correct, and a replay on the processor."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
import torch

from benchmarks.gpu.correctness import correctness, shortfall
from benchmarks.gpu.in_shape import InShape
from benchmarks.gpu.weights import coder, random_weights
from benchmarks.gpu_replay import DRAFTS, PLAIN, Times, figures, run
from benchmarks.typing.scripts import Passage, Script
from completion.decoding.joint_passes import JointPasses
from completion.model.dense.dense_transformer import DenseTransformer
from completion.model.loading import load_model

SCRIPT = Script("id", "python", "a.py", "a = 1\n\nb = 2\n", (Passage(6, 0, "c = a + b\n"),), 10)


def test_the_benchmark_of_steps_needs_no_more_than_torch_numpy_and_numba():
    """A machine with a GPU often has no more."""
    missing = ("platformdirs", "filelock", "tokenizers", "psutil", "huggingface_hub", "gguf", "transformers", "regex")
    script = f"import sys; sys.modules |= dict.fromkeys({missing}); import benchmarks.gpu.__main__"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_another_best_token_is_a_fault_by_as_much_as_it_was_expected_to_lose():
    expected = np.array([[0.0, 2.0, 1.99], [3.0, 1.0, 0.0]])
    assert shortfall(expected, expected + 0.1) == 0
    assert shortfall(expected, np.array([[0.0, 1.99, 2.0], [3.0, 1.0, 0.0]])) == pytest.approx(0.01)
    assert shortfall(expected, np.array([[0.0, 2.0, 1.99], [1.9, 2.0, 0.0]])) == pytest.approx(2)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_format_is_correct_on_the_processor():
    result = correctness("cpu", torch.float32, "auto")
    assert result.pop("correct"), result


def test_tokens_after_the_end_of_a_text_do_not_count_as_drafted():
    drafts = Times([1.0], [2.0], [4.0], tokens=[27], steps=[6])
    plain = Times([1.0], [3.0], [8.0], tokens=[18], steps=[18])
    found = figures({DRAFTS: drafts, PLAIN: plain})
    assert (found["tokens_per_step"], found["drafts_speedup"]) == (3, 2)


@pytest.mark.real_model
def test_a_replay_asks_with_and_without_drafts():
    ticks = iter(range(10_000))
    rows = run(load_model("default", threads=1), [SCRIPT], 4, 3, lambda: next(ticks) / 1000)
    assert len(rows[DRAFTS].whole) == len(rows[PLAIN].whole) > 0
    assert all(  # the last step may add tokens after the text's end
        drafted >= plain > 0 for drafted, plain in zip(rows[DRAFTS].tokens, rows[PLAIN].tokens, strict=True)
    )
    for times in rows.values():
        shown = zip(times.first_text, times.first_line, times.whole, strict=True)
        assert all(0 < first <= line <= whole for first, line, whole in shown)
    assert figures(rows)["requests"] == len(rows[DRAFTS].whole)


def test_a_model_in_a_shape_answers_as_the_real_one_and_keeps_its_slots_in_step():
    shape = dataclasses.replace(coder(1, 64, 2, 1, 64, 32), vocabulary_size=64, max_positions=64)
    real, large = (
        DenseTransformer(one, random_weights(one, torch.float32, "cpu"))
        for one in (shape, dataclasses.replace(shape, layers=2))
    )
    waits = []
    both = InShape(real, large, lambda: waits.append(both.clock()))
    tokens, slots = np.arange(9, dtype=np.int32), np.arange(9, dtype=np.int32)
    answers = []
    for model in (real, JointPasses(both)):  # as an engine calls it
        cache = model.new_cache(40)
        model.prefill(tokens, slots, cache)
        model.score(tokens[:3], np.array([-1, 0, -1], dtype=np.int32), cache)
        cache.commit([0, 1])
        cache.rearrange(np.arange(2, 11, dtype=np.int32))
        answers.append(model.score(tokens[:1], np.array([-1], dtype=np.int32), cache).row(0))
    np.testing.assert_array_equal(answers[0], answers[1])
    assert cache.real.length == cache.large.length == 9
    assert len(waits) == 6
    assert waits[::2] == sorted(waits[::2])  # after the large model; the other waits count the real one's time
