"""Requests that share passes: each gets what it would get alone, and neither errors nor cancellation of another."""

from contextvars import ContextVar

import numpy as np
import pytest

from completion.cancellation import NEVER, CancelToken
from completion.decoding.joint_passes import JointPasses
from completion.errors import CancelledError, ModelError
from drafting.draft_budget import ALONE, SharedStep
from tests.completion.model.rows import chain, rows_of, slots, tokens


@pytest.fixture
def passes(tiny_model):
    return JointPasses(tiny_model.model)


@pytest.fixture
def groups(passes, monkeypatch):
    """The numbers of rows of the trees that were scored together, pass by pass."""
    found, model = [], passes.model
    score, score_together = model.score, model.score_together

    def alone(tokens, parents, cache, cancel=NEVER, skipped=0):
        found.append([len(tokens)])
        return score(tokens, parents, cache, cancel, skipped)

    def together(asked):
        start = len(found)
        logits = score_together(asked)
        found[start:] = [[len(each.tokens) for each in asked]]
        return logits

    monkeypatch.setattr(model, "score", alone)
    monkeypatch.setattr(model, "score_together", together)
    return found


class Writer:
    """A request that writes tokens greedily, one a step; each step also scores `width` - 1 other rows."""

    def __init__(self, passes, seed, steps, width=1, cancel=None):
        self.passes, self.steps, self.width, self.cancel = passes, steps, width, cancel or CancelToken()
        self.cache = passes.new_cache(64)
        self.tokens = tokens(5 + seed, seed).tolist()
        self.outcome = None

    def __call__(self):
        try:
            self.passes.prefill(np.array(self.tokens[:-1], np.int32), slots(len(self.tokens) - 1), self.cache)
            for _ in range(self.steps):
                rows = np.array([self.tokens[-1]] * self.width, np.int32)
                logits = self.passes.score(rows, np.full(self.width, -1, np.int32), self.cache, self.cancel)
                self.cache.commit([0])
                self.tokens.append(int(logits.argmax()[0]))
            self.outcome = self.tokens
        except (CancelledError, ModelError) as error:
            self.outcome = error


def run(passes, *requests):
    for request in requests:
        passes.start(request)
    while len(passes):
        passes.run()


def test_requests_that_share_passes_write_what_each_writes_alone(passes, groups):
    alone = [Writer(passes, seed, steps=4 + seed) for seed in range(3)]
    for request in alone:
        request()
    assert groups == [[1]] * (4 + 5 + 6)  # outside `start`, a pass is run at once
    groups.clear()
    together = [Writer(passes, seed, steps=4 + seed, width=1 + seed) for seed in range(3)]
    run(passes, *together)
    assert [request.outcome for request in together] == [request.outcome for request in alone]
    assert groups == [[1, 2, 3]] * 4 + [[2, 3]] + [[3]]


def test_a_request_joins_those_that_run(passes, groups):
    first, second = (Writer(passes, seed, steps=3) for seed in range(2))
    passes.start(first)
    passes.run()
    run(passes, second)
    assert groups == [[1], [1, 1], [1, 1], [1]]


def test_a_cancelled_request_costs_no_rows_and_the_others_go_on(passes, groups):
    requests = [Writer(passes, seed, steps=3) for seed in range(3)]
    for request in requests:
        passes.start(request)
    requests[1].cancel.cancel()
    run(passes)
    assert isinstance(requests[1].outcome, CancelledError)
    assert [len(request.outcome) for request in (requests[0], requests[2])] == [8, 10]
    assert groups == [[1, 1]] * 3


def test_where_all_are_cancelled_nothing_is_computed(passes, groups):
    request = Writer(passes, 0, steps=3)
    passes.start(request)
    request.cancel.cancel()
    run(passes)
    assert isinstance(request.outcome, CancelledError)
    assert groups == []


def test_what_was_scored_goes_on_before_a_long_computation_and_is_scored_once(passes, groups):
    order = []

    def steps_then_takes_a_turn(name):
        passes.score(tokens(1), chain(1), passes.new_cache(8))
        order.append(f"{name} scored")
        passes.take_turn()
        order.append(f"{name} in turn")

    def takes_a_turn():
        passes.take_turn()
        order.append("c in turn")

    run(passes, takes_a_turn, *(lambda name=name: steps_then_takes_a_turn(name) for name in "ab"))
    assert order == ["a scored", "b scored", "c in turn", "a in turn", "b in turn"]
    assert groups == [[1, 1]]


def test_cancelled_requests_end_before_others_take_their_turn(passes):
    order = []

    def turn(name, cancel):
        passes.take_turn(cancel)
        order.append(name)

    tokens = {name: CancelToken() for name in "abcd"}
    for name, cancel in tokens.items():
        passes.start(lambda name=name, cancel=cancel: turn(name, cancel))
    tokens["b"].cancel()
    tokens["d"].cancel()
    passes.run()
    assert order == ["b", "d"]
    run(passes)
    assert order == ["b", "d", "a", "c"]


def test_a_request_whose_pass_is_cancelled_alone_ends_without_a_warning(passes, monkeypatch, caplog):
    request, score = Writer(passes, 0, steps=3), passes.model.score

    def cancelled_meanwhile(*arguments):
        request.cancel.cancel()
        return score(*arguments)

    monkeypatch.setattr(passes.model, "score", cancelled_meanwhile)
    run(passes, request)
    assert isinstance(request.outcome, CancelledError)
    assert caplog.records == []


def test_an_error_reaches_only_the_request_whose_pass_it_is(passes):
    requests = [Writer(passes, seed, steps=3) for seed in range(3)]
    requests[1].cache = passes.new_cache(len(requests[1].tokens))  # has room for one step
    run(passes, *requests)
    assert isinstance(requests[1].outcome, ModelError)
    alone = [Writer(passes, seed, steps=3) for seed in (0, 2)]
    for request in alone:
        request()
    assert [requests[0].outcome, requests[2].outcome] == [request.outcome for request in alone]


def test_long_computations_take_turns_the_oldest_request_first(passes):
    order = []

    def turns(name):
        for _ in range(2):
            passes.take_turn()
            order.append(name)

    passes.take_turn()  # outside a request it returns at once
    run(passes, *(lambda name=name: turns(name) for name in "ab"), Writer(passes, 0, steps=2))
    assert order == ["a", "a", "b", "b"]


def test_a_request_knows_how_many_rows_the_others_want(passes):
    expected = []

    def asks(request):
        expected.append(passes.company())
        request()

    assert passes.company() == ALONE
    three = [lambda seed=seed: asks(Writer(passes, seed, steps=1, width=3)) for seed in range(3)]
    run(passes, *three[:2], passes.take_turn, three[2])
    assert expected == [ALONE, SharedStep(3, 1), SharedStep(7, 3)]


def test_each_request_has_a_context_of_its_own(passes):
    variable, seen = ContextVar("variable", default=""), []

    def sets(name):
        variable.set(name)
        passes.score(tokens(1), chain(1), passes.new_cache(8))
        seen.append(variable.get())

    run(passes, *(lambda name=name: sets(name) for name in "abc"))
    assert seen == ["a", "b", "c"]
    assert variable.get() == ""


def test_logits_say_how_many_rows_their_pass_had(passes):
    logits = passes.score(tokens(3), chain(3), passes.new_cache(8))
    assert logits.pass_rows == len(rows_of(logits, 3))
