"""One user with many or long requests, and another one: whose job is next."""

import pytest

from completion.host import job
from completion.host.job import Job, Urgency
from completion.host.job_queue import LONG_S, JobQueue
from completion.request import CompletionRequest


@pytest.fixture(autouse=True)
def _no_answer_is_young(monkeypatch):
    monkeypatch.setattr(job, "WHOLE_S", 0.0)


class Crowd:
    """A queue with a clock that only the test moves, whose jobs run one at a time."""

    def __init__(self):
        self.now_s = 0.0
        self.queue = JobQueue(16, lambda _: None, lambda: self.now_s)

    def sends(self, user, document, urgency=Urgency.COMPLETE):
        request = CompletionRequest("x", document=f"{document}\0w\0{user}")
        self.queue.submit(Job(urgency, request, lambda _: None, received=self.now_s))

    def runs(self, seconds=0.1, *, ends=False, unless=""):
        """Run the next job's next piece for a time; return its document's first part."""
        found = self.queue.next(1)
        self.now_s += seconds
        found.shown, name = True, found.document.partition("\0")[0]
        if not ends or name == unless:
            found.remaining = found.remaining or iter(())
            self.queue.put_back(found)
        self.queue.ended(found)
        return name

    def takes_a_turn(self):
        """Run the next job to its end, a piece of a long answer; return its document's first part."""
        return self.runs(ends=True, unless="long")


def test_a_long_answer_takes_turns_with_those_that_wait_and_goes_on():
    crowd = Crowd()
    crowd.sends("ada", "long")
    crowd.runs(LONG_S + 1)
    crowd.sends("bob", "b1")
    crowd.sends("cy", "c1")
    assert [crowd.runs() for _ in range(2)] == ["long", "b1"]
    assert crowd.runs(ends=True) == "b1"
    crowd.sends("bob", "b2")
    assert crowd.runs(ends=True) == "c1"
    assert crowd.runs() == "long"
    assert crowd.runs(ends=True) == "b2"
    assert crowd.runs(ends=True) == "long"


@pytest.fixture
def crowd_with_a_long_answer():
    """A crowd in which ada has a conversation that never ends."""
    crowd = Crowd()
    crowd.sends("ada", "long")
    crowd.runs(LONG_S + 1)
    return crowd


def test_the_second_request_of_a_user_takes_turns_with_a_long_answer_of_another(crowd_with_a_long_answer):
    crowd = crowd_with_a_long_answer
    crowd.sends("bob", "b1")
    crowd.sends("bob", "b2")
    assert [crowd.takes_a_turn() for _ in range(4)] == ["long", "b1", "long", "b2"]


def test_a_second_request_and_a_long_answer_have_their_turns_whatever_comes_later(crowd_with_a_long_answer):
    crowd, served = crowd_with_a_long_answer, []
    crowd.sends("bob", "b1")
    crowd.sends("bob", "b2")
    for number in range(8):
        crowd.sends("cy", f"c{number}")
        served.append(crowd.takes_a_turn())
    assert served == ["long", "b1", "c0", "long", "b2", "c1", "long", "c2"]


def test_a_request_takes_turns_with_a_long_answer_of_the_same_user(crowd_with_a_long_answer):
    crowd = crowd_with_a_long_answer
    crowd.sends("ada", "a")
    assert [crowd.takes_a_turn() for _ in range(3)] == ["long", "a", "long"]


def test_the_many_requests_of_a_user_do_not_overtake_another_user_beside_a_long_answer(crowd_with_a_long_answer):
    crowd = crowd_with_a_long_answer
    for number in range(8):
        crowd.sends("bob", f"b{number}")
    assert [crowd.takes_a_turn() for _ in range(2)] == ["long", "b0"]
    crowd.sends("cy", "c")
    assert [crowd.takes_a_turn() for _ in range(5)] == ["long", "b1", "c", "long", "b2"]


def test_the_requests_of_a_user_move_up_when_the_first_one_is_withdrawn():
    crowd = Crowd()
    for document in ("b1", "b2", "b3"):
        crowd.sends("bob", document)
    crowd.queue.withdraw(crowd.queue._jobs[0])
    crowd.sends("cy", "c1")
    assert [crowd.takes_a_turn() for _ in range(4)] == ["b1", "c1", "b2", "b3"]
    crowd.sends("bob", "b4")
    crowd.sends("cy", "c2")
    assert [crowd.takes_a_turn() for _ in range(2)] == ["b4", "c2"]


def test_a_short_answer_that_waited_long_is_completed_before_others():
    crowd = Crowd()
    crowd.sends("ada", "a")
    crowd.now_s = 10 * LONG_S
    crowd.queue._jobs[0].queue_s = crowd.now_s
    crowd.runs()
    crowd.sends("bob", "b")
    assert [crowd.runs() for _ in range(3)] == ["a"] * 3


@pytest.mark.parametrize("urgency", [Urgency.PREPARE, Urgency.AHEAD, Urgency.NEXT_EDIT])
def test_the_first_job_of_each_user_runs_before_the_second_ones_whatever_it_is(urgency):
    crowd = Crowd()
    for document in ("a1", "a2", "a3"):
        crowd.sends("ada", document, urgency)
    crowd.sends("bob", "b1", urgency)
    assert [crowd.runs(ends=True) for _ in range(4)] == ["a1", "b1", "a2", "a3"]
