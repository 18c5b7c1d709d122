"""The thread that owns the model: it loads the engine, then runs jobs piece by piece, the most urgent first.

Completions of several documents run together where the engine's model is quicker so.
"""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from completion.edits import NextEditRequest
from completion.errors import (
    CancelledError,
    DraftlineError,
    EngineUnavailableError,
    ModelDamagedError,
    RemoteServerError,
)
from completion.host.engine_protocol import EngineLike, EngineLoader, LoadedEngine
from completion.host.errors import EngineFailedError
from completion.host.job import Job, Urgency, superseded_answer
from completion.host.job_queue import JobQueue
from completion.host.metrics import HostMetrics
from completion.memory import drop_library, trim_gpu, trim_heap
from completion.progress import Progress
from completion.request import SUPERSEDED, Closing, CompletionEvent, CompletionRequest, WorkspaceUpdate

logger = logging.getLogger(__name__)

_IDLE_S = 60.0
"""Time without a job after which freed memory is returned to the system, and to the GPU's driver."""
_NEVER = 1 << 30
"""Threshold of a generation of the garbage collector that is not reached."""


def _settle(loaded: LoadedEngine) -> None:
    try:
        loaded.settle()
    except DraftlineError as error:
        logger.warning("%s", error)


class EngineWorker:
    """The thread that runs the jobs of a queue. It sleeps while the queue is empty.

    A completion yields the thread after each event. So a client that waits for its first text never waits for the whole
    answer of another.

    Attributes:
        submit: Queues a job; see `JobQueue.submit`.
        withdraw: Cancels a job whose client has gone; see `JobQueue.withdraw`.
    """

    def __init__(self, load: EngineLoader, metrics: HostMetrics, *, queue_limit: int) -> None:
        self._load = load
        self._metrics = metrics
        self._queue = JobQueue(queue_limit, metrics.queue_length.set)
        self.submit: Callable[[Job], None] = self._queue.submit
        self.withdraw: Callable[[Job], None] = self._queue.withdraw
        self._loaded = False
        self._thread = threading.Thread(target=self._work, name="engine", daemon=True)
        self._trouble = ("", "")
        self._facts: tuple[str, str, int] | None = None  # of the model that was last reported

    def start(
        self,
        on_progress: Progress,
        on_loaded: Callable[[LoadedEngine | DraftlineError], None],
        on_device_lost: Callable[[], None],
        on_trouble: Callable[[str, str], None] = lambda _sentence, _code: None,
    ) -> None:
        """Start the thread, which loads the model. The callbacks are called on it.

        After `on_device_lost` every request fails, because a driver's fault stays for the life of a process.
        `on_loaded` is called again when a model server has another model.
        `on_trouble` gets the sentence of a model server's failure, and the error's code if requests fail; both are ""
        when it serves again.
        """
        self._on_progress, self._on_loaded, self._on_device_lost = on_progress, on_loaded, on_device_lost
        self._on_trouble = on_trouble
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Whether a job runs or waits."""
        return self._queue.busy

    def stop(self, timeout_s: float) -> None:
        """Cancel all jobs, close the engine and end the thread. Wait for that `timeout_s` seconds at most."""
        self._queue.stop()
        if self._loaded:  # loading cannot be interrupted, and needs no clean-up
            self._thread.join(timeout_s)

    def _work(self) -> None:
        thresholds = gc.get_threshold()
        gc.set_threshold(*thresholds[:2], _NEVER)  # a full collection of what is loaded takes 0.2 s and finds nothing
        try:
            loaded = self._load(self._on_progress)
        except DraftlineError as error:
            logger.warning("Loading failed: %s", error.logged)
            self._on_loaded(error)
            return
        # The thread's outermost handler: whatever exception a model's files cause, clients must get an error.
        except Exception as error:
            logger.exception("Loading failed")
            self._on_loaded(EngineFailedError.of("Loading the model", error))
            return
        gc.freeze()  # the model's objects live as long as the process, so garbage collections can skip them
        gc.set_threshold(*thresholds)
        self._loaded = True
        self._note_model(loaded)
        trim_heap()  # parsing the vocabulary leaves 60 MB
        drop_library("libllvmlite.so")  # 50 MB that only the loading of kernels runs, where there is no image of them
        threading.Thread(target=_settle, args=(loaded,), name="settle", daemon=True).start()
        while self._queue.wait(_IDLE_S, partial(self._give_back, loaded)):
            while (job := self._queue.next(loaded.joint_requests)) is not None:
                loaded.requests.start(partial(self._run, loaded, job))
            loaded.requests.run()
        loaded.engine.close()

    def _give_back(self, loaded: LoadedEngine) -> None:
        """Return freed memory. A grammar refers to itself, and the first one was frozen with the model's objects."""
        try:
            loaded.rest()
            gc.unfreeze()
            gc.collect()
            gc.freeze()
            trim_heap()
            trim_gpu()
        # The boundary to a GPU's driver, which may refuse every call after a computer slept. The next request says so.
        except Exception:
            logger.exception("Memory cannot be given back")

    def _run(self, loaded: LoadedEngine, job: Job) -> None:
        outcome, started = "done", False
        try:
            job.cancel.raise_if_cancelled()
            started = True
            if not self._serve(loaded.engine, job):
                outcome = ""
            else:
                self._note_server(loaded, job)
        except CancelledError as error:
            job.close()
            if job.interrupted and self._queue.starts_again(job):
                outcome = ""
                return
            outcome = SUPERSEDED if job.superseded else "cancelled"
            if started:
                self._metrics.cancel.observe(job.cancel.since_s())
            job.deliver(superseded_answer(job) if job.superseded else error)
        except DraftlineError as error:
            outcome = error.code
            self._note_server(loaded, job, error)
            job.deliver(error)
            if isinstance(error, ModelDamagedError):  # the next host makes the weights anew
                self._on_device_lost()
        # The thread's outermost handler: one failed request must not end the thread that serves all the others.
        except Exception as error:
            logger.exception("A request failed")
            if loaded.device_failed(error):
                outcome = "device_lost"
                job.deliver(EngineUnavailableError("The GPU failed. The engine starts again on the processor."))
                self._on_device_lost()
            else:
                outcome = "internal"
                job.deliver(EngineFailedError.of("The request", error))
        finally:
            self._queue.ended(job)
            if outcome:
                job.close()
                self._metrics.requests.labels(job.urgency.name.lower(), outcome).inc()

    def _note_model(self, loaded: LoadedEngine) -> None:
        """Report a model that is loaded, or that a model server has in the place of the last one."""
        facts = loaded.model_name, loaded.device, loaded.context_tokens
        if facts != self._facts:
            self._facts = facts
            self._on_loaded(loaded)

    def _note_server(self, loaded: LoadedEngine, job: Job, error: DraftlineError | None = None) -> None:
        """Report that the model server fails, or serves again, and with which model. Few kinds of jobs reach it."""
        trouble = self._trouble
        if isinstance(error, RemoteServerError):
            trouble = (str(error), error.code)
        elif error is None and isinstance(job.payload, CompletionRequest):
            self._note_model(loaded.now() or loaded)
            trouble = (loaded.trouble(), "")
        if trouble != self._trouble:
            self._trouble = trouble
            self._on_trouble(*trouble)

    def _serve(self, engine: EngineLike, job: Job) -> bool:
        """Run a job, or the next piece of a completion or workspace update; return whether the job is done."""
        payload = job.payload
        if isinstance(payload, Closing):
            engine.forget(payload)
        elif isinstance(payload, NextEditRequest):
            job.deliver(engine.next_edits(payload, job.cancel))
        elif isinstance(payload, CompletionRequest) and job.urgency is Urgency.PREPARE:
            engine.prepare(payload, job.cancel)
        else:
            return self._serve_piece(engine, payload, job)
        return True

    def _serve_piece(self, engine: EngineLike, payload: CompletionRequest | WorkspaceUpdate, job: Job) -> bool:
        """Deliver the next event of a completion, or apply the next piece of an update; the job waits for the rest."""
        if job.remaining is None:
            job.queue_s = time.perf_counter() - job.received
            if isinstance(payload, WorkspaceUpdate):
                job.remaining = engine.update_workspace(payload, job.cancel)
            else:
                job.remaining = engine.complete(payload, job.cancel)
        for event in job.remaining:
            if event is not None:
                job.cancel.raise_if_cancelled()
                job.deliver(self._counted(event, job))
                job.shown = True
            if event is None or not event.done:
                self._queue.put_back(job)
                return False
        return True

    def _counted(self, event: CompletionEvent, job: Job) -> CompletionEvent:
        """Count a completion at its last event; return an event with the time that the job has waited."""
        if event.statistics is None:
            return event
        if event.done and job.urgency is Urgency.COMPLETE:
            total_s = time.perf_counter() - job.received
            self._metrics.count_completion(event.statistics, queue_s=job.queue_s, total_s=total_s)
        return replace(event, statistics=replace(event.statistics, queue_ms=job.queue_s * 1000))
