"""Nothing that is cancelled goes on in the engine, whatever it is."""

import threading

import pytest

from completion.edits import NextEditRequest
from completion.host.job import Job, Urgency
from completion.host.metrics import HostMetrics
from completion.host.worker import EngineWorker
from completion.request import Closing, CompletionRequest, WorkspaceFile, WorkspaceUpdate
from tests.completion.host.paced_engine import PacedEngine

AFTER_S = 60.0
"""Bound on a wait for what is due within one step of an engine: a busy machine schedules late."""


@pytest.fixture
def engine():
    engine = PacedEngine(gated=True)
    engine.gated_files = True
    return engine


@pytest.fixture
def worker(engine):
    loaded = threading.Event()
    worker = EngineWorker(lambda _: engine.load(lambda *_: None), HostMetrics(), queue_limit=100)
    worker.start(lambda *_: None, lambda _: loaded.set(), lambda: None)
    assert loaded.wait(AFTER_S)
    yield worker
    engine.permits.release(1000)
    worker.stop(AFTER_S)


def jobs():
    """Return a job of each kind."""
    files = tuple(WorkspaceFile(f"{number}.py", "x") for number in range(50))
    yield Job(Urgency.COMPLETE, CompletionRequest("x", document="a", max_tokens=50), lambda _: None)
    yield Job(Urgency.NEXT_EDIT, NextEditRequest(("x",), (), "python", document="b"), lambda _: None)
    yield Job(Urgency.PREPARE, CompletionRequest("x", document="c"), lambda _: None)
    yield Job(Urgency.WORKSPACE, WorkspaceUpdate("file:///w", files), lambda _: None)


@pytest.mark.parametrize("index", range(4))
def test_one_step_after_its_cancellation_nothing_of_a_job_is_left(engine, worker, index):
    job = list(jobs())[index]
    worker.submit(job)
    assert (engine.readying if job.urgency is Urgency.PREPARE else engine.began).acquire(timeout=AFTER_S)
    if job.urgency is Urgency.WORKSPACE:
        worker.submit(Job(Urgency.WORKSPACE, Closing((), ("file:///w",)), lambda _: None))
    else:
        worker.withdraw(job)
    engine.permits.release()  # one step ends; every other would wait for ever
    if job.urgency is Urgency.WORKSPACE:
        assert engine.forgot.acquire(timeout=AFTER_S)
    done = threading.Event()
    worker.submit(Job(Urgency.COMPLETE, CompletionRequest("y", document="z", max_tokens=0), lambda _: done.set()))
    assert done.wait(AFTER_S)
    assert len(engine.files) <= 1
