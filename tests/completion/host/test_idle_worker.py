"""What the model's thread does when no job comes."""

import threading

from completion.host import worker
from completion.host.engine_protocol import LoadedEngine
from completion.host.metrics import HostMetrics
from tests.torture.echo_engine import EchoEngine


def test_an_idle_host_lets_the_model_give_memory_back(monkeypatch):
    monkeypatch.setattr(worker, "_IDLE_S", 0.01)
    has_rested = threading.Event()
    idle = worker.EngineWorker(
        lambda _: LoadedEngine(EchoEngine(), "echo", "test", rest=has_rested.set), HostMetrics(), queue_limit=1
    )
    idle.start(lambda *_: None, lambda _: None, lambda: None)
    assert has_rested.wait(10)
    idle.stop(10)
