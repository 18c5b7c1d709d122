"""What the model's thread does when no job comes."""

import queue
import threading

from completion.host import worker
from completion.host.engine_protocol import LoadedEngine
from completion.host.job import Job, Urgency
from completion.host.metrics import HostMetrics
from completion.request import CompletionRequest
from tests.torture.echo_engine import EchoEngine


def test_an_idle_host_lets_the_model_give_memory_back(monkeypatch):
    monkeypatch.setattr(worker, "_IDLE_S", 0.01)
    has_rested = threading.Event()
    idle = worker.EngineWorker(
        lambda _: LoadedEngine(EchoEngine(), "echo", "test", rest=has_rested.set), HostMetrics(), queue_limit=1
    )
    idle.start(lambda *_: None, lambda _: None, lambda: None)
    assert has_rested.wait(60)
    idle.stop(10)


def test_a_host_serves_on_after_memory_could_not_be_given_back(monkeypatch):
    """A GPU's driver may refuse every call after the computer slept."""
    monkeypatch.setattr(worker, "_IDLE_S", 0.01)
    was_idle, events = threading.Event(), queue.SimpleQueue()

    def rest() -> None:
        was_idle.set()
        raise RuntimeError("the driver refuses")

    idle = worker.EngineWorker(
        lambda _: LoadedEngine(EchoEngine(), "echo", "test", rest=rest), HostMetrics(), queue_limit=1
    )
    idle.start(lambda *_: None, lambda _: None, lambda: None)
    assert was_idle.wait(60)
    idle.submit(Job(Urgency.COMPLETE, CompletionRequest("x"), events.put))
    assert events.get(timeout=60)
    idle.stop(10)
