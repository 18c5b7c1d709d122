"""Jobs for workspaces in a crowded room: when they run, in which order, and which versions of a file they index."""

import asyncio
import itertools

import pytest

from completion.host import job_queue
from completion.host.errors import QueueFullError
from completion.host.job import Job, Urgency
from completion.host.job_queue import (
    AT_ONCE_S,
    FILE_CHARACTERS,
    MAX_CHARACTERS,
    OVERDUE_S,
    OVERDUE_SHARE,
    JobQueue,
    replaced,
)
from completion.host.server import HostSettings
from completion.request import Closing, CompletionRequest, WorkspaceFile, WorkspaceUpdate
from tests.completion.host.paced_engine import PacedEngine
from tests.completion.host.test_requests import acquire, body, read_events, until_waiting
from tests.completion.host.test_together import TOGETHER, Answers, engine, loaded, request_in, start, texts_alone

__all__ = ["engine", "loaded", "start"]
PIECE_S, STEP_S = 0.01, 0.05


def drop(_event):
    """Take an answer that no test reads."""


def file(path, text=""):
    return WorkspaceFile(path, text)


def update(workspace, *changed, removed=(), received=0.0):
    return Job(Urgency.WORKSPACE, WorkspaceUpdate(workspace, changed, removed), drop, received=received)


def closing(*workspaces, documents=()):
    return Job(Urgency.WORKSPACE, Closing(documents, workspaces), drop, received=0.0)


class Room:
    """A queue with a clock that only its jobs move, in which a completion of each of two documents always waits."""

    def __init__(self, *jobs):
        self.now_s = 0.0
        self.queue = JobQueue(16, lambda _: None, lambda: self.now_s)
        for job in (*jobs, *(self._completion(number) for number in range(2))):
            self.queue.submit(job)

    def _completion(self, number):
        return Job(Urgency.COMPLETE, CompletionRequest("x", document=f"{number}\0w\0ada"), drop, received=0.0)

    def runs(self, pieces=1):
        """Run the next job, an update in a number of pieces; return it."""
        job = self.queue.next(1)
        if job.urgency is Urgency.WORKSPACE:
            self.now_s += PIECE_S
            job.remaining = iter(range(pieces)) if job.remaining is None else job.remaining
            if next(job.remaining) < pieces - 1:
                self.queue.put_back(job)
        else:
            self.now_s += STEP_S
            self.queue.submit(self._completion(job.document[0]))
        self.queue.ended(job)
        return job

    def updates(self, count, pieces=1):
        """Return the workspaces' jobs of the room's next runs, up to a number of them."""
        runs = (self.runs(pieces) for _ in range(100 * count))
        return [job.payload for job in itertools.islice((job for job in runs if not job.document), count)]


def test_an_overdue_update_runs_though_completions_wait_and_gets_a_bounded_share_of_the_time():
    room = Room(update("w", file("a"), received=1.0))
    runs = [(room.now_s, room.runs(pieces=1000).urgency) for _ in range(1000)]
    began = [at_s for at_s, urgency in runs if urgency is Urgency.WORKSPACE]
    assert OVERDUE_S + 1.0 <= began[0] <= OVERDUE_S + 1.0 + STEP_S
    assert len(began) * PIECE_S / (room.now_s - began[0]) == pytest.approx(OVERDUE_SHARE, rel=0.1)
    groups = itertools.groupby(urgency for _, urgency in runs)
    longest = max(len([*group]) for urgency, group in groups if urgency is Urgency.WORKSPACE)
    assert longest * PIECE_S <= AT_ONCE_S + PIECE_S


def test_what_an_update_takes_while_nobody_waits_does_not_count():
    now_s = [10.0]
    queue = JobQueue(16, lambda _: None, lambda: now_s[0])
    for path in "ab":
        queue.submit(update("w", file(path)))
    first = queue.next(1)
    now_s[0] += 100
    queue.ended(first)
    queue.submit(Job(Urgency.COMPLETE, CompletionRequest("x"), drop))
    assert queue.next(1).urgency is Urgency.WORKSPACE


def test_a_piece_of_an_overdue_update_runs_beside_as_many_completions_as_may_run_together():
    waiting = update("w", file("a"))
    room = Room(waiting)
    first = room.queue.next(1)
    assert room.queue.next(1) is None
    room.now_s = OVERDUE_S
    assert room.queue.next(1) is waiting
    room.queue.ended(waiting)
    assert room.queue.next(1) is None
    room.queue.ended(first)


def test_owners_of_overdue_updates_take_turns_and_each_ones_keep_their_order():
    ada = [update("w\0ada", file(path)) for path in "abc"]
    bob = [update("w\0bob", file(path)) for path in "de"]
    room = Room(*ada, *bob)
    room.now_s = OVERDUE_S
    ran = [found.changed[0].path for found in room.updates(10, pieces=2)]
    assert ran == ["a", "d", "a", "d", "b", "e", "b", "e", "c", "c"]


def test_a_closing_and_what_was_sent_before_and_after_it_keep_their_order():
    before, closed, after = update("w\0ada", file("a", "old")), closing("w\0ada"), update("w\0ada", file("a", "new"))
    room = Room(before, closed, after)
    room.now_s = OVERDUE_S
    assert room.updates(3) == [before.payload, closed.payload, after.payload]


def test_a_closing_ends_what_would_open_its_documents_again_and_no_completion():
    queue = JobQueue(16, lambda _: None)
    completion, preparation, other = (
        Job(urgency, CompletionRequest("x", document=document), drop)
        for urgency, document in ((Urgency.COMPLETE, "a"), (Urgency.PREPARE, "a"), (Urgency.PREPARE, "b"))
    )
    for job in (completion, preparation, other, closing(documents=("a",))):
        queue.submit(job)
    assert [job.superseded for job in (completion, preparation, other)] == [False, True, False]


def test_a_newer_version_of_a_file_takes_the_place_of_the_one_that_waits():
    first, second = update("w", file("a", "1"), file("b", "1")), update("w", file("c", "1"), removed=("d",))
    room = Room(first, second)
    room.queue.submit(update("w", file("c", "2"), file("e", "2"), file("d", "2"), removed=("a",)))
    room.queue.submit(update("other", file("b", "3")))
    room.now_s = OVERDUE_S
    assert room.updates(4) == [
        WorkspaceUpdate("w", (file("b", "1"),), ("a",)),
        WorkspaceUpdate("w", (file("d", "2"), file("c", "2"))),
        WorkspaceUpdate("w", (file("e", "2"),)),
        WorkspaceUpdate("other", (file("b", "3"),)),
    ]


def test_a_newer_version_waits_where_the_older_one_is_being_indexed():
    begun = update("w", file("a", "1"), file("b", "1"))
    room = Room(begun)
    room.now_s = OVERDUE_S
    assert room.runs(pieces=2) is begun
    room.queue.submit(update("w", file("b", "2")))
    assert room.updates(2, pieces=2) == [begun.payload, WorkspaceUpdate("w", (file("b", "2"),))]


def test_versions_of_files_in_a_full_queue_are_never_refused_and_others_are():
    room, limit = Room(), 16 * 8
    for text in "12":
        for number in range(limit):
            room.queue.submit(update("w", file(str(number), text)))
    with pytest.raises(QueueFullError):
        room.queue.submit(update("w", file("0", "3"), file("new", "3")))  # which is sent again, as a whole
    room.now_s = OVERDUE_S
    assert [found.changed for found in room.updates(limit)] == [
        (file(str(number), "3" if number == 0 else "2"),) for number in range(limit)
    ]


def test_a_user_whose_files_fill_the_memory_is_refused_until_they_are_indexed_and_others_are_not():
    room, large = Room(), "x" * (MAX_CHARACTERS // 2 + 1)
    for path in "ab":
        room.queue.submit(update("w\0ada", file(path, large)))
    for path in "ac":
        with pytest.raises(QueueFullError, match="characters"):
            room.queue.submit(update("w\0ada", file(path, large)))
    room.queue.submit(update("w\0bob", file("a", large)))
    room.now_s = OVERDUE_S
    assert len(room.updates(1)) == 1
    room.queue.submit(update("w\0ada", file("c", large)))


def test_files_without_text_count_as_well():
    room, names = Room(), iter([str(number) for number in range(MAX_CHARACTERS // FILE_CHARACTERS + 1)])
    while changed := [file(name) for name in itertools.islice(names, 500)]:
        room.queue.submit(update("w\0ada", *changed, removed=tuple(itertools.islice(names, 500))))
    with pytest.raises(QueueFullError, match="characters"):
        room.queue.submit(update("w\0ada", file("one more")))


def test_an_update_without_a_common_file_replaces_nothing():
    older, newer = WorkspaceUpdate("w", (file("a"),), ("b",)), WorkspaceUpdate("w", (file("c"),), ("d",))
    assert replaced(older, newer) == (older, newer)


async def test_an_open_file_is_indexed_while_there_is_always_a_completion_that_waits(start_host, monkeypatch):
    monkeypatch.setattr(job_queue, "OVERDUE_S", 0.0)
    engine = PacedEngine(gated=True)
    client = await start_host(engine, HostSettings())
    tasks = [asyncio.create_task(read_events(client, body(document=name, max_tokens=9))) for name in "ab"]
    await acquire(engine.began)
    await until_waiting(client, 1)
    for text in ("1", "2"):
        sent = {"workspace": "w", "changed": [{"path": "a.py", "text": text}]}
        assert (await client.post("/v1/workspace", json=sent)).status_code == 202
    engine.permits.release(3)
    for _ in range(3):
        await acquire(engine.stepped)
    await acquire(engine.began)
    assert [found.changed[0].text for found in engine.updates] == ["2"]
    assert not any(task.done() for task in tasks)
    engine.permits.release(100)
    await asyncio.gather(*tasks)


def test_updates_between_shared_passes_change_no_text(start, tiny_model, monkeypatch):
    monkeypatch.setattr(job_queue, "OVERDUE_SHARE", 1.0)  # all of them run before the next pass
    answers = Answers()
    requests = [request_in(number, workspace="w", max_tokens=40) for number in range(TOGETHER)]
    jobs = [answers.job(each.document, each) for each in requests]
    changes = [update("w", file(f"{number}.py", requests[number].prefix * 20)) for number in range(TOGETHER)]
    deliver, done = jobs[0].deliver, []

    def watch(event):
        if not done:
            for change in changes:
                worker.submit(change)
        done.append(worker._metrics.requests.labels("workspace", "done")._value.get())
        deliver(event)

    jobs[0].deliver = watch
    worker = start(*jobs)
    answers.wait_for(TOGETHER)
    assert (done[0], done[1]) == (0, len(changes))
    assert [answers.text(each.document) for each in requests] == texts_alone(tiny_model, requests)
