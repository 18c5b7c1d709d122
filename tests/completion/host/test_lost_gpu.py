"""A GPU that fails after its trial leaves the model to the processor, with a sentence for the user.

torch's CPU device stands in for the GPU. It fails as an allocator without memory does.
"""

import queue

import pytest
import torch

from completion.cancellation import CancelToken
from completion.errors import EngineUnavailableError
from completion.host.engine_loader import load_engine
from completion.host.job import Job, Urgency
from completion.host.metrics import HostMetrics
from completion.host.server import HostSettings
from completion.host.worker import EngineWorker
from completion.model import devices, loading
from completion.model.dense.dense_transformer import DenseTransformer
from completion.model.devices import Trial
from completion.model.gpu_memory import Gpu
from completion.model.transformer import has_int8_instructions
from completion.progress import silent
from completion.request import CompletionRequest
from tests.tiny_models import write_tiny_model

STAND_IN = Gpu("cpu", "stand-in", "1.0", 8 << 30)
REMARK = "The GPU stand-in is not used: OutOfMemoryError, CUDA out of memory."
REQUEST = CompletionRequest("def add(a, b):\n    return ", language="python", max_tokens=4)


def full(*_arguments, **_options):
    raise torch.OutOfMemoryError("CUDA out of memory.")


def passed(model, gpu, plan, _threads, _progress):
    """Stand for a trial that the GPU has passed."""
    return devices._read(devices._record(model.digest, gpu), gpu, plan) or Trial(gpu.name, seconds=1.0, cpu_seconds=2.0)


pytestmark = pytest.mark.skipif(not has_int8_instructions(), reason="torch runs the model on the processor, too")


@pytest.fixture
def settings(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path / "cache"))
    for module in (loading, devices):
        monkeypatch.setattr(module, "find_gpu", lambda: STAND_IN)
    monkeypatch.setattr(loading, "tried", passed)
    return HostSettings(model=str(write_tiny_model(tmp_path / "tiny", head_dim=32)), threads=1)


def test_a_gpu_that_fails_at_the_start_is_left_out_at_once(settings, monkeypatch):
    def lost(*_arguments, **_options):
        """Fail as a driver does that refuses every call from now on."""
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.cuda, "empty_cache", full)
        full()

    monkeypatch.setattr(DenseTransformer, "score", lost)
    loaded = load_engine(settings, silent)
    assert loaded.remark == REMARK
    assert [event.done for event in loaded.engine.complete(REQUEST, CancelToken())][-1]
    loaded.engine.close()


def test_a_gpu_that_fails_in_a_request_ends_the_engine_and_the_next_one_says_why(settings, monkeypatch):
    lost, loaded, events = queue.Queue(), queue.Queue(), queue.Queue()
    worker = EngineWorker(lambda progress: load_engine(settings, progress), HostMetrics(), queue_limit=4)
    worker.start(silent, loaded.put, lambda: lost.put(True), lambda _sentence: None)
    first = loaded.get(timeout=100)
    assert first.remark == ""
    outcome = "in its trial 2.0 times as fast as the processor, predictions 0.0000 nats from the processor's"
    assert first.device == f"cpu (stand-in, {outcome})"
    with monkeypatch.context() as patch:
        patch.setattr(DenseTransformer, "score", full)
        worker.submit(Job(Urgency.COMPLETE, REQUEST, events.put))
        error = events.get(timeout=100)
    assert isinstance(error, EngineUnavailableError)
    assert str(error) == "The GPU failed. The engine starts again on the processor."
    assert lost.get(timeout=100)
    worker.stop(100)
    again = load_engine(settings, silent)
    assert again.remark == REMARK
    again.engine.close()
