"""The engine takes as many threads as it has cores."""

import os
from threading import Barrier

import pytest

from completion.model.int8.worker_threads import WorkerThreads, usable_threads

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


@pytest.mark.parametrize(
    ("limit", "threads"),
    [
        ("max 100000", CORES),
        (f"{100_000 * CORES + 50_000} 100000", CORES),
        ("150000 100000", 1),
        ("50000 100000", 1),
        ("damaged", CORES),
    ],
)
def test_a_container_with_the_time_of_fewer_cores_than_it_sees_gets_as_many_threads(tmp_path, limit, threads):
    (tmp_path / "cpu.max").write_text(f"{limit}\n")
    assert usable_threads(tmp_path) == threads


def test_without_a_container_each_core_has_a_thread(tmp_path):
    assert usable_threads(tmp_path) == CORES


def test_a_task_that_fails_here_returns_after_the_others_have_ended():
    threads, ended = WorkerThreads(3), []
    started = Barrier(3)

    def task(thread):
        started.wait(60)
        if thread == 0:
            raise ValueError("thread 0")
        ended.append(thread)

    with pytest.raises(ValueError, match="thread 0"):
        threads.run(task)
    assert sorted(ended) == [1, 2]
