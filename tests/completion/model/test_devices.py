"""A GPU is used if its trial shows that it predicts what the processor predicts, and sooner.

There is no GPU here: torch's own CPU device stands in for one, in bfloat16, as a GPU would compute.
"""

import json
import re
import shutil
import threading
from dataclasses import replace

import pytest
import torch

from completion.errors import ModelError
from completion.model import devices, loading, transformer
from completion.model.dense import weights
from completion.model.devices import MAX_DIVERGENCE, Trial, note_failure, tried, try_gpu
from completion.model.gpu_memory import Gpu, GpuPlan
from completion.model.loading import load_model
from completion.model.store.apart import run_apart
from completion.model.store.model_store import prepare
from tests.completion.model.test_loading import next_tokens

STAND_IN = Gpu("cpu", "stand-in", "1.0", 8 << 30)
NO_CUDA = Gpu("cuda", "card without a driver", "1.0", 8 << 30)
NO_DRIVER = re.compile("CUDA|NVIDIA driver")  # what a torch without CUDA says, and one with it
PLAN = GpuPlan("plain", int8_cache=False, memory_share=0.8)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def reports():
    return []


def trial_of(folder, gpu, reports=None):
    return tried(
        prepare(str(folder)),
        gpu,
        PLAN,
        1,
        lambda sentence, _share: reports.append(sentence) if reports is not None else None,
    )


def note_failure_of(folder, gpu):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(devices, "find_gpu", lambda: gpu)
        assert note_failure(prepare(str(folder)).digest, PLAN, torch.OutOfMemoryError("full"))


def full(*_size, **_options):
    """Stand for an allocator without memory."""
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 6 GiB.\nmore")


def computed(seconds=1.0, cpu_seconds=2.0, divergence=0.001):
    return Trial("card", seconds, cpu_seconds, divergence)


def test_a_trial_runs_once_and_its_outcome_is_kept(tiny_qwen2, reports, monkeypatch):
    first = trial_of(tiny_qwen2, STAND_IN, reports)
    assert first.failure == ""
    assert first.divergence <= MAX_DIVERGENCE
    assert first.seconds > 0
    assert first.cpu_seconds > 0
    assert reports[0] == "Trying the GPU stand-in: once, some seconds"
    monkeypatch.setattr(devices, "run_apart", None)  # a second trial would call it
    assert trial_of(tiny_qwen2, STAND_IN) == first


def test_two_models_in_folders_of_one_name_have_a_trial_each(tiny_qwen2, tiny_llama, tmp_path, cache, reports):
    qwen, llama = (shutil.copytree(each, tmp_path / each.name / "final") for each in (tiny_qwen2, tiny_llama))
    note_failure_of(qwen, STAND_IN)
    assert trial_of(llama, STAND_IN, reports).failure == ""
    assert reports
    assert trial_of(qwen, STAND_IN).failure == "OutOfMemoryError, full"
    assert {path.suffix for path in (cache / "devices").iterdir()} == {".json"}


def test_another_driver_is_tried_anew_and_a_damaged_record_too(tiny_qwen2, cache, reports):
    note_failure_of(tiny_qwen2, STAND_IN)
    assert trial_of(tiny_qwen2, STAND_IN, reports).failure == "OutOfMemoryError, full"
    assert reports == []
    assert trial_of(tiny_qwen2, replace(STAND_IN, driver="1.1"), reports).failure == ""
    (record,) = (cache / "devices").iterdir()
    record.write_text('{"machine": ', encoding="utf-8")
    assert trial_of(tiny_qwen2, STAND_IN).failure == ""
    json.loads(record.read_text(encoding="utf-8"))


def test_a_gpu_that_torch_cannot_use_leaves_the_model_on_the_processor(tiny_qwen2, monkeypatch):
    monkeypatch.setattr(loading, "find_gpu", lambda: NO_CUDA)
    loaded = load_model(str(tiny_qwen2), threads=1)
    assert loaded.device == "cpu"
    assert loaded.remark.startswith("The GPU card without a driver is not used: ")
    assert NO_DRIVER.search(loaded.remark)


def test_a_gpu_that_fails_in_its_trial_costs_no_time_of_the_processors(tiny_qwen2, cache, monkeypatch):
    monkeypatch.setattr(transformer, "load_transformer", None)  # a use of the processor would call it
    (cache / "devices").mkdir(parents=True)
    record = cache / "devices" / "record.json"
    try_gpu(tiny_qwen2, NO_CUDA, PLAN, 1, record, lambda *_report: None)
    assert NO_DRIVER.search(Trial(**json.loads(record.read_text(encoding="utf-8"))["trial"]).failure)


def test_bf16_without_a_usable_gpu_says_so_and_runs_on_the_processor(tiny_qwen2, monkeypatch):
    monkeypatch.setattr(loading, "find_gpu", lambda: NO_CUDA)
    loaded = load_model(str(tiny_qwen2), backend="bf16", threads=1)
    assert loaded.device == "cpu"
    assert NO_DRIVER.search(loaded.remark)


def test_other_backends_look_for_no_gpu(tiny_qwen2, monkeypatch):
    monkeypatch.setattr(loading, "find_gpu", None)  # a look would call it
    assert load_model(str(tiny_qwen2), backend="fp32", threads=1).remark == ""


def test_a_gpu_that_agrees_and_is_quicker_runs_the_model(tiny_qwen2, monkeypatch):
    monkeypatch.setattr(loading, "find_gpu", lambda: STAND_IN)
    monkeypatch.setattr(Trial, "refusal", property(lambda _trial: ""))  # which is quicker here is chance
    taken, load_on_gpu = [], transformer.load_on_gpu

    def noted(folder, device, plan):
        taken.append((device, plan))
        return load_on_gpu(folder, device, plan)

    monkeypatch.setattr(transformer, "load_on_gpu", noted)
    loaded = load_model(str(tiny_qwen2), threads=1)
    assert (loaded.remark, loaded.plan) == ("", PLAN)
    assert re.fullmatch(
        r"stand-in, in its trial [\d.]+ times as fast as the processor, predictions 0\.0\d+ nats from the processor's",
        loaded.outcome,
    )
    assert taken == [("cpu", PLAN)]


def test_a_gpu_whose_memory_is_taken_after_its_trial_leaves_the_model_on_the_processor(tiny_qwen2, monkeypatch):
    monkeypatch.setattr(loading, "find_gpu", lambda: STAND_IN)
    monkeypatch.setattr(Trial, "refusal", property(lambda trial: trial.failure))
    monkeypatch.setattr(transformer, "load_on_gpu", full)
    loaded = load_model(str(tiny_qwen2), threads=1)
    assert len(next_tokens(loaded, "def add(first")) == loaded.model.shape.vocabulary_size
    assert loaded.remark == "OutOfMemoryError, CUDA out of memory. Tried to allocate 6 GiB."


@pytest.mark.parametrize("backend", ["int8", "q4"])
def test_a_gpu_runs_the_rounded_backends_too(tiny_qwen2, monkeypatch, backend):
    monkeypatch.setattr(loading, "find_gpu", lambda: STAND_IN)
    monkeypatch.setattr(Trial, "refusal", property(lambda trial: trial.failure))
    loaded = load_model(str(tiny_qwen2), backend=backend, threads=1)
    assert (loaded.remark, loaded.plan.weights) == ("", backend)
    assert len(next_tokens(loaded, "def add(first")) == loaded.model.shape.vocabulary_size


def test_a_model_too_large_for_its_share_runs_on_the_processor(tiny_qwen2, monkeypatch):
    monkeypatch.setattr(loading, "find_gpu", lambda: STAND_IN)
    loaded = load_model(str(tiny_qwen2), threads=1, gpu_memory_share=0.05)
    assert loaded.remark == "The GPU stand-in is not used: the model needs more than 5% of its memory."
    assert loaded.plan is None


def test_a_share_of_zero_looks_for_no_gpu(tiny_qwen2, monkeypatch):
    monkeypatch.setattr(loading, "find_gpu", None)  # a look would call it
    assert load_model(str(tiny_qwen2), threads=1, gpu_memory_share=0).remark == ""


def test_memory_that_is_missing_shows_before_the_weights_are_read(tiny_qwen2, monkeypatch):
    monkeypatch.setattr(loading, "find_gpu", lambda: STAND_IN)
    monkeypatch.setattr(torch, "empty", full)
    monkeypatch.setattr(weights, "read_weights", None)  # a reading would call it
    loaded = load_model(str(tiny_qwen2), backend="bf16", threads=1)
    assert loaded.remark.endswith("is not used: OutOfMemoryError, CUDA out of memory. Tried to allocate 6 GiB.")


def test_a_gpu_that_predicts_something_else_is_refused(tiny_qwen2, tiny_llama, cache, monkeypatch):
    other = transformer.load_on_gpu(tiny_llama, "cpu", PLAN)
    monkeypatch.setattr(transformer, "load_on_gpu", lambda *_arguments: other)
    (cache / "devices").mkdir(parents=True)
    record = cache / "devices" / "record.json"
    try_gpu(tiny_qwen2, STAND_IN, PLAN, 1, record, lambda *_report: None)
    trial = Trial(**json.loads(record.read_text(encoding="utf-8"))["trial"])
    assert trial.divergence > MAX_DIVERGENCE
    assert trial.refusal == "The GPU stand-in is not used: its predictions differ from the processor's."


@pytest.mark.parametrize(
    ("trial", "words"),
    [
        (computed(), ""),
        (computed(divergence=float("nan")), "predictions differ"),
        (computed(divergence=float("inf")), "predictions differ"),
        (computed(seconds=5.0), "the processor is 2.5 times as fast"),
        (Trial("card", failure="no memory"), "no memory"),
    ],
)
def test_a_refusal_says_why(trial, words):
    assert words in trial.refusal
    assert bool(trial.refusal) == bool(words)


def test_a_gpu_that_fails_in_a_request_is_left_out_for_an_hour(tiny_qwen2, monkeypatch):
    monkeypatch.setattr(loading, "find_gpu", lambda: STAND_IN)
    digest = load_model(str(tiny_qwen2), backend="fp32", threads=1).digest
    assert not note_failure(digest, PLAN, ValueError("a fault of ours: out of memory"))
    assert not note_failure(digest, PLAN, RuntimeError("The size of tensor a must match the size of tensor b"))
    assert note_failure(digest, PLAN, RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED"))
    assert note_failure(digest, PLAN, RuntimeError("Triton Error [CUDA]: an illegal memory access was encountered"))
    assert not note_failure(digest, None, torch.OutOfMemoryError("of the processor"))
    note_failure_of(tiny_qwen2, STAND_IN)
    for backend in ("auto", "bf16"):
        remark = load_model(str(tiny_qwen2), backend=backend, threads=1).remark
        assert remark == "The GPU stand-in is not used: OutOfMemoryError, full"
    now = devices.time.time()
    monkeypatch.setattr(devices.time, "time", lambda: now + 3601)
    assert trial_of(tiny_qwen2, STAND_IN).failure == ""


def test_a_cache_that_the_gpu_has_no_memory_for_ends_on_the_processor(tiny_qwen2, monkeypatch):
    monkeypatch.setattr(loading, "find_gpu", lambda: STAND_IN)
    monkeypatch.setattr(devices, "find_gpu", lambda: STAND_IN)
    monkeypatch.setattr(Trial, "refusal", property(lambda trial: trial.failure))
    loaded = load_model(str(tiny_qwen2), threads=1)
    assert loaded.plan == PLAN
    with monkeypatch.context() as patch:
        patch.setattr(torch, "zeros", full)
        with pytest.raises(torch.OutOfMemoryError) as raised:
            next_tokens(loaded, "def add(first")
    assert note_failure(loaded.digest, loaded.plan, raised.value)
    again = load_model(str(tiny_qwen2), threads=1)
    assert (again.plan, again.remark) == (None, "OutOfMemoryError, CUDA out of memory. Tried to allocate 6 GiB.")
    assert len(next_tokens(again, "def add(first")) == again.model.shape.vocabulary_size


def forever(_progress):
    threading.Event().wait()


def test_a_trial_that_hangs_is_ended():
    with pytest.raises(ModelError, match="exit status -9"):
        run_apart(f"{__name__}:forever", progress=lambda *_report: None, limit_s=0.2)
