"""Requests of one document that reach the queue in another order than their client sent them."""

import pytest

from completion.edits import NextEditRequest
from completion.host.job import Job, Urgency
from completion.host.job_queue import JobQueue
from completion.request import CompletionRequest


@pytest.fixture
def jobs():
    return JobQueue(16, lambda _: None)


def completion(order=0, document="a\0ada", urgency=Urgency.COMPLETE):
    return Job(urgency, CompletionRequest("x = ", document=document, order=order), lambda _: None)


def next_edit(order):
    return Job(Urgency.NEXT_EDIT, NextEditRequest(("x",), (), document="a\0ada", order=order), lambda _: None)


def submitted(jobs, *given):
    for job in given:
        jobs.submit(job)
    return [job.superseded for job in given]


def test_a_request_that_was_sent_before_never_supersedes_a_newer_one_however_many_come_late(jobs):
    newest, *late = (completion(order) for order in (3, 1, 2))
    assert submitted(jobs, newest, *late) == [False, True, True]
    assert jobs.next(1) in late, "what is superseded ends first"


def test_a_late_request_does_not_supersede_or_interrupt_what_runs(jobs):
    newest = completion(2)
    jobs.submit(newest)
    assert jobs.next(1) is newest
    assert submitted(jobs, completion(1)) == [True]
    assert not newest.cancel.cancelled
    assert not newest.cancel.hurried


def test_requests_without_an_order_count_by_their_arrival(jobs):
    assert submitted(jobs, completion(), completion(), completion()) == [True, True, False]


@pytest.mark.parametrize("other", ["a\0bob", "b\0ada"])
def test_the_orders_of_two_windows_and_of_two_documents_are_not_compared(jobs, other):
    assert submitted(jobs, completion(9), completion(1, other)) == [False, False]


def test_late_requests_for_next_edits_and_preparations_give_way_too(jobs):
    assert submitted(jobs, next_edit(2), next_edit(1)) == [False, True]
    preparation, late = (completion(order, urgency=Urgency.PREPARE) for order in (4, 3))
    assert submitted(jobs, preparation, late) == [False, True]
    assert submitted(jobs, completion(2)) == [False]
    assert not preparation.superseded
