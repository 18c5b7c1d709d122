"""Completions of several documents share forward passes; each has the text and the end that it has alone."""

from __future__ import annotations

import math
import queue
import threading

import pytest

from completion.cancellation import CancelToken
from completion.engine import Engine
from completion.host import job
from completion.host.engine_loader import load_engine
from completion.host.engine_protocol import LoadedEngine
from completion.host.job import Job, Urgency
from completion.host.job_queue import JobQueue
from completion.host.metrics import HostMetrics
from completion.host.server import HostSettings
from completion.host.worker import EngineWorker
from completion.model.loading import load_model
from completion.model.transformer import has_int8_instructions
from completion.progress import silent
from completion.request import CompletionEvent, CompletionRequest, Mode
from tests.tiny_models import write_tiny_model

SOURCE = "class Stack:\n    def __init__(self):\n        self.items = []\n\n"
TAILS = [
    "    def push(self, item):\n        self.it",
    "    def pop(self):\n        return ",
    "    def peek(self",
    "    x = [",
]
TOGETHER = 3
NEEDS_INT8 = pytest.mark.skipif(not has_int8_instructions(), reason="this processor lacks AVX2")


def request_in(number: int, **fields) -> CompletionRequest:
    tail = TAILS[number % len(TAILS)]
    values = {"mode": Mode.BLOCK, "max_tokens": 6 + 2 * number, "filters": False, "document": f"d{number}", **fields}
    return CompletionRequest(SOURCE * (1 + number) + tail, "\n", "python", **values)


def text_of(event: CompletionEvent) -> str:
    return event.suggestions[0].text if event.suggestions else event.dropped


def steps_of(events: list[CompletionEvent]) -> int:
    return events[-1].statistics.steps


class Answers:
    """Takes the events of jobs, on the worker's thread."""

    def __init__(self) -> None:
        self.events: dict[str, list] = {}
        self._ended: queue.Queue[str] = queue.Queue()

    def job(self, name: str, request: CompletionRequest, urgency: Urgency = Urgency.COMPLETE) -> Job:
        self.events[name] = []
        return Job(urgency, request, lambda event: self._take(name, event))

    def wait_for(self, count: int) -> None:
        for _ in range(count):
            self._ended.get(timeout=60)

    def text(self, name: str) -> str:
        return text_of(self.events[name][-1])

    def _take(self, name: str, event) -> None:
        self.events[name].append(event)
        if not isinstance(event, CompletionEvent) or event.done:
            self._ended.put(name)


@pytest.fixture(autouse=True)
def _no_answer_is_young(monkeypatch):
    monkeypatch.setattr(job, "WHOLE_S", 0.0)


@pytest.fixture
def loaded(request, tiny_model, tmp_path):
    """The model: the tiny one in float32, or that of a test's parameter."""
    backend = getattr(request, "param", "fp32")
    if backend == "fp32":
        return tiny_model
    return load_model(str(write_tiny_model(tmp_path / "tiny", head_dim=32)), backend=backend, threads=2)


@pytest.fixture
def engine(loaded):
    engine = Engine(loaded)
    engine.passes.joint_requests = TOGETHER
    return engine


@pytest.fixture
def groups(engine, monkeypatch):
    """The numbers of requests that shared a pass, for each pass that several shared."""
    found, score = [], engine.passes.model.score_together

    def noted(passes):
        found.append(len(passes))
        return score(passes)

    monkeypatch.setattr(engine.passes.model, "score_together", noted)
    return found


@pytest.fixture
def start(engine):
    """Start a worker with jobs that wait already when it has loaded its engine."""
    workers = []

    def start(*jobs: Job) -> EngineWorker:
        worker = EngineWorker(
            lambda _: LoadedEngine(engine, "tiny", "cpu", requests=engine.passes), HostMetrics(), queue_limit=16
        )
        workers.append(worker)
        for each in jobs:
            worker.submit(each)
        worker.start(lambda *_: None, lambda _: None, lambda: None)
        return worker

    yield start
    for worker in workers:
        worker.stop(60)


def texts_alone(loaded, requests):
    return [text_of([*Engine(loaded).complete(each, CancelToken())][-1]) for each in requests]


def test_a_host_runs_requests_together_as_its_engines_model_can(tiny_qwen2):
    loaded = load_engine(HostSettings(model=str(tiny_qwen2), backend="fp32"), silent)
    try:
        assert isinstance(loaded.engine, Engine)
        assert loaded.requests is loaded.engine.passes
        assert loaded.requests.joint_requests == loaded.engine.passes.model.joint_requests
    finally:
        loaded.engine.close()


@pytest.mark.parametrize("loaded", ["fp32", pytest.param("int8", marks=NEEDS_INT8)], indirect=True)
def test_completions_of_several_documents_share_passes_and_have_the_text_of_each_alone(start, groups, loaded):
    answers, requests = Answers(), [request_in(number) for number in range(5)]
    start(*(answers.job(each.document, each) for each in requests))
    answers.wait_for(len(requests))
    assert [answers.text(each.document) for each in requests] == texts_alone(loaded, requests)
    assert max(groups) == TOGETHER
    assert sum(groups) > sum(steps_of(answers.events[each.document]) for each in requests) / 2


def test_requests_of_one_document_never_run_together(start, groups, loaded):
    answers = Answers()
    requests = [request_in(0, document=""), request_in(1, document="")]
    start(*(answers.job(str(number), each) for number, each in enumerate(requests)))
    answers.wait_for(2)
    assert [answers.text("0"), answers.text("1")] == texts_alone(loaded, requests)
    assert groups == []


def test_a_client_that_goes_leaves_the_others_as_they_are(start, loaded):
    answers, requests = Answers(), [request_in(number) for number in range(TOGETHER)]
    gone = answers.job("gone", requests[1])
    deliver = gone.deliver

    def go(event):
        worker.withdraw(gone)
        deliver(event)

    gone.deliver = go
    worker = start(answers.job("d0", requests[0]), gone, answers.job("d2", requests[2]))
    answers.wait_for(3)
    assert [answers.text("d0"), answers.text("d2")] == texts_alone(loaded, requests[::2])
    assert answers.events["gone"][-1].code == "cancelled"


def test_a_newer_request_of_a_document_waits_for_no_prompt_of_others_before_it_starts(start, engine, monkeypatch):
    answers, started, prefill, begun = Answers(), threading.Event(), engine.passes.model.prefill, {}
    jobs = [answers.job(f"d{number}", request_in(number)) for number in range(TOGETHER)]
    newer = answers.job("newer", request_in(2, max_tokens=2))

    def noted(tokens, slots, cache, *arguments, **named):
        assert started.wait(60)
        if not begun:
            worker.submit(newer)
        begun.setdefault(id(cache), (len(answers.events["d2"]), newer.remaining is not None))
        return prefill(tokens, slots, cache, *arguments, **named)

    monkeypatch.setattr(engine.passes.model, "prefill", noted)
    worker = start(*jobs)
    started.set()
    answers.wait_for(TOGETHER + 1)
    assert list(begun.values()) == [(0, False), (1, True), (1, True)]
    assert answers.text("d2") == "superseded"


def test_what_is_generated_in_advance_gives_way_to_a_completion_and_starts_again(start, groups, loaded):
    answers = Answers()
    ahead, asked = request_in(0, ahead=True, document="a\0ada"), request_in(1, document="b\0bob")
    job = answers.job("ahead", ahead, Urgency.AHEAD)
    score = job.deliver

    def first(event):
        job.deliver = score
        worker.submit(answers.job("asked", asked))
        score(event)

    job.deliver = first
    worker = start(job)
    answers.wait_for(2)
    assert [answers.text("ahead"), answers.text("asked")] == texts_alone(loaded, [ahead, asked])


def test_a_worker_that_stops_ends_the_requests_that_wait_in_the_middle_of_a_step(start):
    answers = Answers()
    jobs = [answers.job(f"d{number}", request_in(number, max_tokens=200)) for number in range(TOGETHER)]
    deliver = jobs[0].deliver

    def stop(event):
        jobs[0].deliver, stopped = deliver, threading.Event()
        with jobs[-1].cancel.calling(stopped.set):
            threading.Thread(target=worker.stop, args=(60,)).start()
            assert stopped.wait(60)
        deliver(event)

    jobs[0].deliver = stop
    worker = start(*jobs)
    answers.wait_for(TOGETHER)
    assert {answers.events[f"d{number}"][-1].code for number in range(TOGETHER)} == {"cancelled"}


def test_a_preparation_that_has_stopped_does_not_start_again_while_a_completion_of_its_user_runs():
    jobs, answers = JobQueue(16, lambda _: None), Answers()
    preparation = answers.job("d0", request_in(0, document="d0\0ada"), Urgency.PREPARE)
    jobs.submit(preparation)
    assert jobs.next(8) is preparation
    for number, user in enumerate(("bob", "ada"), 1):
        each = answers.job(user, request_in(number, document=f"d{number}\0{user}"))
        jobs.submit(each)
        assert jobs.next(8) is each
    assert preparation.interrupted
    assert not jobs.starts_again(preparation)
    assert preparation.superseded


def test_only_completions_that_somebody_waits_for_and_what_has_to_end_join_others(monkeypatch):
    monkeypatch.setattr(job, "WHOLE_S", math.inf)
    jobs, answers = JobQueue(16, lambda _: None), Answers()
    first, second, shown = (answers.job(f"d{number}", request_in(number)) for number in range(3))
    preparation = answers.job("d3", request_in(3, document="d3\0bob"), Urgency.PREPARE)
    shown.shown = True
    for each in (shown, preparation, first):
        jobs.submit(each)
    assert jobs.next(8) is first
    assert jobs.next(8) is None
    jobs.submit(second)
    assert jobs.next(1) is None
    assert jobs.next(8) is second
    shown.cancel.cancel()  # or a newer request of its document would wait until nothing runs
    assert jobs.next(8) is shown
    for each in (first, second, shown):
        jobs.ended(each)
    assert jobs.next(8) is preparation
