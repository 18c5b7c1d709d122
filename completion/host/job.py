"""Jobs of the model's thread: what runs first, what runs together, and which job makes which other one needless."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from completion.cancellation import CancelToken
from completion.edits import NextEditRequest, NextEdits
from completion.errors import EngineUnavailableError
from completion.host.errors import QueueFullError
from completion.host.process.clients import document_of, owner_of
from completion.request import SUPERSEDED, Closing, CompletionEvent, CompletionRequest, WorkspaceUpdate

WHOLE_S = 0.2
"""Age at which an answer that shows text is completed before other answers begin, in seconds. With 16 simulated typists
half of the first texts come within 94 ms and 95 % of the whole answers within 376 ms. With 0 s it takes 173 and 353 ms,
without such an age 61 and 905 ms."""

_WORKSPACE_FACTOR = 8
"""How many times the limit workspace updates may wait: they come in bursts, even before the model is loaded."""
_OWNERS = 8
"""Number of users or clients whose queues may be full at once."""
_COMPARED_CHARACTERS = 200
"""Number of characters on each side of a cursor that are compared."""
Deliver = Callable[[Any], None]
"""Gets a `CompletionEvent`, `NextEdits` or a `DraftlineError`, by the kind of the job."""


class Urgency(IntEnum):
    """Urgency of a job; the lowest number runs first. Users wait only for completions."""

    COMPLETE = 0
    PREPARE = 1
    AHEAD = 2
    NEXT_EDIT = 3
    WORKSPACE = 4


@dataclass(slots=True, eq=False)
class Job:
    """A unit of work for the model's thread.

    Attributes:
        deliver: Called on the model's thread with each event, or with the error that ended the job.
        superseded: Whether a newer job has cancelled this one.
        interrupted: Whether a completion has stopped this job, which starts again after it.
        withdrawn: Whether its client has gone.
        shown: Whether an event was delivered.
        received: Time of its receipt by `time.perf_counter`, in seconds.
        turn: Number of completions of its owner that waited at its receipt.
        number: Number of its receipt, which orders jobs of the same rank.
        queue_s: Time between its receipt and its start, in seconds.
        remaining: Events of a completion or pieces of a workspace update that are still to come; None before the start.
    """

    urgency: Urgency
    payload: CompletionRequest | NextEditRequest | WorkspaceUpdate | Closing
    deliver: Deliver
    cancel: CancelToken = field(default_factory=CancelToken)
    superseded: bool = False
    interrupted: bool = False
    withdrawn: bool = False
    shown: bool = False
    received: float = field(default_factory=time.perf_counter)
    turn: int = 0
    number: int = 0
    queue_s: float = 0.0
    remaining: Generator[CompletionEvent | None] | None = None

    @property
    def document(self) -> str:
        """Key of the job's document, "" if it has none."""
        return self.payload.document if isinstance(self.payload, CompletionRequest | NextEditRequest) else ""

    @property
    def order(self) -> int:
        """Place among the jobs of its client, 0 if it has none."""
        return self.payload.order if isinstance(self.payload, CompletionRequest | NextEditRequest) else 0

    @property
    def owner(self) -> str:
        """Name of the user or client that sent the job, "" if its keys have none."""
        return owner_of(self.payload.workspace if isinstance(self.payload, WorkspaceUpdate) else self.document)

    @property
    def rank(self) -> tuple[bool, Urgency, bool, int, int]:
        """Position in the order of jobs; the lowest one runs first.

        What is cancelled only has to end. A completion that shows nothing yet runs before young ones that do, and the
        first of each owner before the second ones.
        """
        return not self.cancel.cancelled, self.urgency, self.can_wait, self.turn, self.number

    @property
    def may_join(self) -> bool:
        """Whether it may run together with others: a completion whose user waits for text, or what only has to end."""
        return self.cancel.cancelled or (self.urgency is Urgency.COMPLETE and not self.can_wait)

    @property
    def can_wait(self) -> bool:
        """Whether it is a young completion that shows text, which its user reads meanwhile."""
        return self.urgency is Urgency.COMPLETE and self.shown and time.perf_counter() - self.received < WHOLE_S

    def close(self) -> None:
        """End what has begun, before another job of the document begins."""
        if self.remaining is not None:
            self.remaining.close()
            self.remaining = None


def superseded_answer(job: Job) -> CompletionEvent | NextEdits:
    """Return the answer to a job that a newer one has cancelled."""
    is_completion = isinstance(job.payload, CompletionRequest)
    return CompletionEvent((), done=True, dropped=SUPERSEDED) if is_completion else NextEdits()


def supersedes(newer: Job, older: Job) -> bool:
    """Return whether a job makes an older one needless, which is cancelled then."""
    if Urgency.WORKSPACE in (newer.urgency, older.urgency) or was_sent_before(newer, older):
        return False
    if newer.urgency is Urgency.COMPLETE and older.urgency in {Urgency.PREPARE, Urgency.AHEAD}:
        return newer.owner == older.owner
    if newer.document != older.document or document_of(newer.document) == "":
        return False
    if isinstance(newer.payload, CompletionRequest) and isinstance(older.payload, NextEditRequest):
        return newer.urgency is Urgency.COMPLETE and _has_changed(older.payload, newer.payload)
    return older.urgency is newer.urgency


def was_sent_before(job: Job, other: Job) -> bool:
    """Return whether a client sent a job before another one of the same document, whichever was received first."""
    return job.document == other.document and job.order < other.order


def interrupts(newer: Job, running: Job) -> bool:
    """Return whether the running job stops for a newer one and starts again after it.

    A completion waits for no other kind of job. What is shown or applied piece by piece waits between two pieces.
    """
    less_urgent = newer.urgency is Urgency.COMPLETE and running.urgency not in {Urgency.COMPLETE, Urgency.WORKSPACE}
    return less_urgent and not running.shown


def _has_changed(before: NextEditRequest, now: CompletionRequest) -> bool:
    """Return whether the text around the cursor of a request is another one than before, because a key was typed."""
    around = now.prefix[-_COMPARED_CHARACTERS:] + now.suffix[:_COMPARED_CHARACTERS]
    return around.replace("\r\n", "\n").strip("\r") not in "\n".join(before.lines)


class JobQueue:
    """The jobs that wait and those that run. Any thread may submit; one thread runs them.

    Args:
        limit: Maximum number of jobs of each urgency that an owner may have waiting.
        note_length: Callback with the number of waiting jobs.
    """

    def __init__(self, limit: int, note_length: Callable[[int], None]) -> None:
        self._limit, self._note_length = limit, note_length
        self._jobs: list[Job] = []
        self._running: list[Job] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._stopped = False

    def submit(self, job: Job) -> None:
        """Queue a job, and cancel the jobs that it supersedes. The queue's limit does not apply to a `Closing`.

        A job of a document supersedes older ones of the same kind. A completion also supersedes its owner's
        preparations and completions in advance, interrupts those of others, supersedes or interrupts any request for
        next edits, and tells the other completions to skip their alternatives. A job that its client sent before one
        that supersedes it is superseded at once.

        Raises:
            QueueFullError: Too many jobs of this urgency wait, of this owner or of all together.
            EngineUnavailableError: The host is stopping.
        """
        with self._changed:
            if self._stopped:
                raise EngineUnavailableError("The engine is stopping.")
            self._make_way(job)
            waiting = [other for other in self._waiting() if other.urgency is job.urgency]
            own = sum(other.owner == job.owner for other in waiting)
            limit = self._limit * (_WORKSPACE_FACTOR if job.urgency is Urgency.WORKSPACE else 1)
            if not isinstance(job.payload, Closing) and (own >= limit or len(waiting) >= _OWNERS * limit):
                whose = f"{own} of your requests" if own >= limit else f"{len(waiting)} requests of all users"
                raise QueueFullError(f"{whose} already wait for the model. Try again in a second.")
            job.number = next(self._numbers)
            job.turn = own if job.urgency is Urgency.COMPLETE else 0
            self._push(job)
            self._changed.notify()

    def _make_way(self, job: Job) -> None:
        """Cancel what a job supersedes or interrupts, or the job itself if a newer one was received before it."""
        alive = self._alive()
        if any(was_sent_before(job, other) and supersedes(other, job) for other in alive):
            job.superseded = True
            job.cancel.cancel()
            return
        for older in alive:
            if supersedes(job, older):
                older.superseded = True
                older.cancel.cancel()
            elif older in self._running and interrupts(job, older):
                older.interrupted = True
                older.cancel.cancel()
            elif job.urgency is Urgency.COMPLETE:
                older.cancel.hurry()

    def withdraw(self, job: Job) -> None:
        """Cancel a job whose client has gone; it does not start again either."""
        with self._changed:
            job.withdrawn = True
            job.cancel.cancel()

    @property
    def busy(self) -> bool:
        """Whether a job runs or waits that is not cancelled."""
        with self._changed:
            return bool(self._alive())

    def stop(self) -> None:
        """Cancel all jobs and refuse new ones."""
        with self._changed:
            self._stopped = True
            for job in self._alive():
                job.cancel.cancel()
            self._changed.notify()

    def wait(self, idle_s: float, idle: Callable[[], None]) -> bool:
        """Wait for a job unless some run; return False if the queue has stopped and is empty.

        Args:
            idle_s: Time after which `idle` is called, in seconds.
            idle: Called once; jobs can be submitted only after it.
        """
        with self._changed:
            wait_s: float | None = idle_s
            while not self._jobs and not self._running and not self._stopped:
                if not self._changed.wait(wait_s):
                    idle()
                    wait_s = None
            return bool(self._jobs or self._running)

    def next(self, most: int) -> Job | None:
        """Take out the most urgent job that may run now, with `most` at once; None if there is none.

        Those that run are only joined by jobs of other documents that may join them.
        """
        with self._changed:
            begun = {job.document for job in self._jobs if job.remaining and job.urgency is not Urgency.WORKSPACE}
            free = [job for job in self._jobs if job.remaining or job.document not in begun]
            if self._running:
                taken = {job.document for job in self._running}
                free = [job for job in free if job.may_join and job.document not in taken]
            if not free or len(self._running) >= most:
                return None
            chosen = min(free, key=lambda job: job.rank)
            self._jobs.remove(chosen)
            self._running.append(chosen)
            self._note_length(len(self._jobs))
            return chosen

    def put_back(self, job: Job) -> None:
        """Queue a running job again, for its next piece."""
        with self._changed:
            self._push(job)

    def starts_again(self, job: Job) -> bool:
        """Queue an interrupted job again, unless its client has gone or a newer job supersedes it."""
        with self._changed:
            job.interrupted = False
            job.superseded = any(supersedes(other, job) for other in self._alive() if other is not job)
            if job.withdrawn or job.superseded or self._stopped:
                return False
            job.cancel = CancelToken()
            self._push(job)
            return True

    def ended(self, job: Job) -> None:
        """Note that a job, or its piece, does not run any more."""
        with self._changed:
            self._running.remove(job)

    def _waiting(self) -> list[Job]:
        return [job for job in self._jobs if not job.cancel.cancelled]

    def _alive(self) -> list[Job]:
        return [job for job in self._running if not job.cancel.cancelled] + self._waiting()

    def _push(self, job: Job) -> None:
        self._jobs.append(job)
        self._note_length(len(self._jobs))
