"""The queue of the model's thread: which job runs next, which ones run together, and which ones are refused."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from completion.cancellation import CancelToken
from completion.errors import EngineUnavailableError
from completion.host.errors import QueueFullError
from completion.host.job import Job, Urgency, interrupts, supersedes, was_sent_before
from completion.request import Closing, WorkspaceFile, WorkspaceUpdate

OVERDUE_S = 1.0
"""Time after which an update of a workspace is overdue, in seconds: language servers collect changes for as long."""
OVERDUE_SHARE = 0.1
"""Share of the thread's time that overdue updates get while other jobs wait. An update by a file of 10,000 characters,
as each typist sends every second, takes 8 ms: those of sixteen typists have their turns within 2 s."""
AT_ONCE_S = 0.02
"""Time of that share that may be taken at once, in seconds: less than a forward pass of several completions takes."""

LONG_S = 1.0
"""Time after its start from which an answer takes turns with those that wait, in seconds: longer than what editors show
takes, and far shorter than a conversation or thousands of tokens."""

_WORKSPACE_FACTOR = 8
"""How many times the limit workspace updates may wait: they come in bursts, even before the model is loaded."""
_OWNERS = 8
"""Number of users or clients whose queues may be full at once."""
MAX_CHARACTERS = 32 << 20
"""Number of characters in an owner's updates from which on further ones are refused: editors send a workspace in
updates of a million."""
FILE_CHARACTERS = 1024
"""Number of characters that each file counts for besides its text: its objects, and the time to find older versions."""


def replaced(older: WorkspaceUpdate, newer: WorkspaceUpdate) -> tuple[WorkspaceUpdate, WorkspaceUpdate]:
    """Return an update with the versions of its files that a newer one has, and the newer one without these."""
    versions, new = _versions(older), _versions(newer)
    if versions.keys().isdisjoint(new):
        return older, newer
    versions = {path: new.pop(path, version) for path, version in versions.items()}
    return _update(older.workspace, versions), _update(newer.workspace, new)


def _versions(update: WorkspaceUpdate) -> dict[str, WorkspaceFile | None]:
    """Return the files of an update by path; None for one that was removed."""
    return dict.fromkeys(update.removed) | {file.path: file for file in update.changed}


def _update(workspace: str, versions: Mapping[str, WorkspaceFile | None]) -> WorkspaceUpdate:
    changed = tuple(file for file in versions.values() if file is not None)
    return WorkspaceUpdate(workspace, changed, tuple(path for path, file in versions.items() if file is None))


class JobQueue:
    """The jobs that wait and those that run. Any thread may submit; one thread runs them.

    Args:
        limit: Maximum number of jobs of each urgency that an owner may have waiting.
        note_length: Callback with the number of waiting jobs.
        clock: Seconds of the clock of `Job.received`.
    """

    def __init__(
        self, limit: int, note_length: Callable[[int], None], clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._limit, self._note_length, self._clock = limit, note_length, clock
        self._jobs: list[Job] = []
        self._running: list[Job] = []
        self._numbers = itertools.count()
        self._updating_s = 0.0  # when the last piece of an update began
        self._due_s = 0.0  # when overdue updates will have had no more than their share
        self._changed = threading.Condition()
        self._stopped = False

    def submit(self, job: Job) -> None:
        """Queue a job, and cancel the jobs that it supersedes. The queue's limit does not apply to a `Closing`.

        A job of a document supersedes older ones of the same kind. A completion also supersedes its owner's
        preparations and completions in advance, interrupts those of others, supersedes or interrupts any request for
        next edits, and tells the other completions to skip their alternatives. A job that its client sent before one
        that supersedes it is superseded at once. The files of a workspace update take the places of older versions that
        wait, however many updates do.

        Raises:
            QueueFullError: Too many jobs of this urgency wait, of this owner or of all together, or too much text does.
            EngineUnavailableError: The host is stopping.
        """
        with self._changed:
            if self._stopped:
                raise EngineUnavailableError("The engine is stopping.")
            self._make_way(job)
            if isinstance(job.payload, WorkspaceUpdate):
                self._check_characters(job.owner)
                if not self._has_more(job, job.payload):
                    return
            waiting = [other for other in self._waiting() if other.urgency is job.urgency]
            own = [other for other in waiting if other.owner == job.owner]
            limit = self._limit * (_WORKSPACE_FACTOR if job.urgency is Urgency.WORKSPACE else 1)
            if not isinstance(job.payload, Closing) and (len(own) >= limit or len(waiting) >= _OWNERS * limit):
                whose = f"{len(own)} of your requests" if len(own) >= limit else f"{len(waiting)} requests of all users"
                raise QueueFullError(f"{whose} already wait for the model. Try again in a second.")
            job.number = next(self._numbers)
            is_update = job.urgency is Urgency.WORKSPACE
            job.turn = 0 if is_update else sum(other.remaining is None for other in own)
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

        After `idle_s` seconds, `idle` is called once; jobs can be submitted only after it.
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

        Those that run are only joined by jobs of other documents that may join them, and by a piece of an overdue
        update, which waits for none of them.
        """
        with self._changed:
            updates = self._updates()
            free = self._overdue(updates) or self._startable(updates, most)
            if not free:
                return None
            chosen = min(free, key=lambda job: job.rank)
            self._jobs.remove(chosen)
            if chosen.urgency is Urgency.WORKSPACE:
                self._updating_s = self._clock()
            elif chosen.remaining is None:
                self._move_up(chosen)
            self._running.append(chosen)
            self._note_length(len(self._jobs))
            return chosen

    def put_back(self, job: Job) -> None:
        """Queue a running job again, for its next piece; a long answer after all whose turn it is."""
        with self._changed:
            if job.urgency is Urgency.COMPLETE and self._clock() - job.received - job.queue_s > LONG_S:
                job.number = next(self._numbers)
            self._push(job)

    def starts_again(self, job: Job) -> bool:
        """Queue an interrupted job again, unless its client has gone or a newer job supersedes it."""
        with self._changed:
            job.interrupted = False
            newer = (other for other in self._alive() if other.number > job.number)
            job.superseded = any(supersedes(other, job) for other in newer)
            if job.withdrawn or job.superseded or self._stopped:
                return False
            job.cancel = CancelToken()
            self._push(job)
            return True

    def ended(self, job: Job) -> None:
        """Note that a job, or its piece, does not run any more."""
        with self._changed:
            self._running.remove(job)
            if job.urgency is Urgency.WORKSPACE:
                self._note_piece(job.owner)

    def _move_up(self, begun: Job) -> None:
        """Give the owner's other jobs that wait to begin earlier turns, each after what already waits in that turn."""
        waiting = [job for job in self._waiting() if job.remaining is None and job.urgency is begun.urgency]
        own = sorted((job for job in waiting if job.owner == begun.owner), key=lambda job: (job.turn, job.number))
        for turn, job in enumerate(own):
            if turn < job.turn:
                job.turn, job.number = turn, next(self._numbers)

    def _note_piece(self, owner: str) -> None:
        """Note that a piece of an owner's update has run: the others' turns come, and its time counts if jobs wait."""
        turn = next(self._numbers)
        for job in self._jobs:
            if job.urgency is Urgency.WORKSPACE and job.owner == owner:
                job.turn = turn
        if self._running or any(job.urgency is not Urgency.WORKSPACE for job in self._jobs):
            saved_s = min(self._updating_s - self._due_s, AT_ONCE_S / OVERDUE_SHARE)
            self._due_s = self._updating_s - saved_s + (self._clock() - self._updating_s) / OVERDUE_SHARE

    def _check_characters(self, owner: str) -> None:
        """Raise a `QueueFullError` if too much text waits in an owner's updates."""
        payloads = [job.payload for job in self._jobs if job.owner == owner]
        updates = [payload for payload in payloads if isinstance(payload, WorkspaceUpdate)]
        waiting = sum(FILE_CHARACTERS * len(update.removed) for update in updates)
        waiting += sum(FILE_CHARACTERS + len(file.text) for update in updates for file in update.changed)
        if waiting > MAX_CHARACTERS:
            raise QueueFullError(f"{waiting:,} characters of your files already wait. Try again in a second.")

    def _has_more(self, job: Job, update: WorkspaceUpdate) -> bool:
        """Put files of a new update in the places of older versions that wait; return whether it has others.

        What waits before a `Closing` of the workspace stays as it is.
        """
        closings = [(each.number, each.payload) for each in self._jobs if isinstance(each.payload, Closing)]
        closed = max((number for number, closing in closings if update.workspace in closing.workspaces), default=-1)
        for older in self._jobs:
            waits = older.remaining is None and older.number > closed
            if waits and isinstance(older.payload, WorkspaceUpdate) and older.payload.workspace == update.workspace:
                older.payload, update = replaced(older.payload, update)
        has_more = update == job.payload or update != WorkspaceUpdate(update.workspace)
        job.payload = update
        return has_more

    def _updates(self) -> list[Job]:
        """Return the oldest of each owner's jobs for workspaces: they run in the order of their receipt."""
        oldest: dict[str, Job] = {}
        for job in self._jobs:
            if job.urgency is Urgency.WORKSPACE:
                oldest[job.owner] = min(job, oldest.get(job.owner, job), key=lambda each: each.number)
        return list(oldest.values())

    def _overdue(self, updates: Sequence[Job]) -> list[Job]:
        """Return those that have waited too long, none while updates have had their share of the time."""
        now_s = self._clock()
        return [job for job in updates if now_s >= max(self._due_s, job.received + OVERDUE_S)]

    def _startable(self, updates: Sequence[Job], most: int) -> list[Job]:
        """Return the other jobs that may run now."""
        begun = {job.document for job in self._jobs if job.remaining and job.urgency is not Urgency.WORKSPACE}
        others = [job for job in self._jobs if job.urgency is not Urgency.WORKSPACE]
        free = [*updates, *(job for job in others if job.remaining or job.document not in begun)]
        if self._running:
            taken = {job.document for job in self._running}
            free = [job for job in free if job.may_join and job.document not in taken]
        return free if len(self._running) < most else []

    def _waiting(self) -> list[Job]:
        return [job for job in self._jobs if not job.cancel.cancelled]

    def _alive(self) -> list[Job]:
        return [job for job in self._running if not job.cancel.cancelled] + self._waiting()

    def _push(self, job: Job) -> None:
        self._jobs.append(job)
        self._note_length(len(self._jobs))
