"""Local first, remote when better: a real engine beside an emulated vLLM that agrees, differs, stalls and dies."""

from __future__ import annotations

import itertools
import socket
import struct
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from completion.cancellation import CancelToken
from completion.engine import Engine
from completion.errors import CancelledError
from completion.memory import MemoryPart
from completion.model.loading import load_model
from completion.progress import silent
from completion.remote.address import RemoteAddress
from completion.remote.engine import RemoteEngine, RemoteModel
from completion.remote.local_first import UNREAD_S, LocalFirst
from completion.remote.standby import FIRST_RETRY_S, MAX_MISSES, MAX_RETRY_S, Deadline, Standby
from completion.request import Closing, GrammarMode, WorkspaceFile, WorkspaceUpdate
from tests.completion.remote.test_remote_engine import CURSORS, last, request_at
from tests.completion.remote.vllm_emulation import VllmEmulation
from tests.tiny_models import write_tiny_model

REQUEST = request_at(CURSORS[0], filters=False, grammar=GrammarMode.OFF, remote=True)


class Clock:
    """A clock that a test moves on, or lets run: how quick the machine is decides nothing."""

    ahead_s = 0.0
    runs = False

    def __call__(self) -> float:
        return self.ahead_s + (time.monotonic() if self.runs else 0.0)


class PacedVllm(VllmEmulation):
    """The emulated server, which waits before each token for `pace` and dies after some tokens.

    Attributes:
        waiting: Set when a request waits for `pace`. The question that connects sets it, too.
    """

    def __init__(self, loaded) -> None:
        self.pace = threading.Semaphore(1 << 20)
        self.dies_after = None
        self.on_end = lambda: None
        self.waiting = threading.Event()
        self._handlers = {}
        super().__init__(loaded)

    def slow_down(self) -> None:
        self.pace = threading.Semaphore(0)
        self.waiting.clear()

    def speed_up(self) -> None:
        self.pace.release(1 << 10)

    def _complete(self, handler, body) -> None:
        self._handlers[threading.get_ident()] = handler
        super()._complete(handler, body)
        self.on_end()

    def _generate(self, body):
        for number, generated in enumerate(super()._generate(body)):
            if number == self.dies_after and body["priority"] == 0:
                connection = self._handlers[threading.get_ident()].connection
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()
                raise ConnectionResetError
            self.waiting.set()
            self.pace.acquire()
            yield generated

    @property
    def prompts(self):
        """Completions that were requested, without handshakes and preparations."""
        return [body for path, body in self.requests if path == "/v1/completions" and body["priority"] == 0]


class PacedEngine(Engine):
    """The local engine, which waits for `pace` before each event."""

    def __init__(self, loaded) -> None:
        super().__init__(loaded)
        self.pace = threading.Semaphore(1 << 20)
        self.completed = 0
        self.asked = None

    def complete(self, request, cancel):
        self.completed += 1
        self.asked = request
        with cancel.calling(lambda: self.pace.release(1 << 10)):
            for event in super().complete(request, cancel):
                self.pace.acquire()
                cancel.raise_if_cancelled()
                yield event


@pytest.fixture(scope="session")
def loaded(tiny_gguf):
    return load_model(f"{tiny_gguf}.folder", backend="fp32")


@pytest.fixture(scope="session")
def other(tmp_path_factory, tiny_gguf):
    """Another model with the same tokens."""
    folder = write_tiny_model(tmp_path_factory.mktemp("other") / "tiny", seed=5)
    weights, ours = (load_file(one / "model.safetensors") for one in (folder, Path(f"{tiny_gguf}.folder")))
    small = ours["lm_head.weight"].abs().amax(1) < 0.1  # tokens that neither model writes
    weights["lm_head.weight"][small] *= 0.01
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return load_model(str(folder), backend="fp32")


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def local(loaded):
    return PacedEngine(loaded)


@pytest.fixture
def beside(local, tiny_gguf, clock):
    """Return a function that puts a server with a model beside the local engine; both end with the test."""
    started = []

    def put(model):
        vllm = PacedVllm(model)

        def connect(cancel):
            address = RemoteAddress(vllm.url, "vllm", mode="local_first")
            return RemoteEngine(RemoteModel.connect(address, f"{tiny_gguf}.folder", silent, cancel))

        standby = Standby(connect, lambda: None, clock)
        engine = LocalFirst(local, standby, clock)
        started.append((vllm, engine))
        settled(standby)
        return vllm, standby, engine

    yield put
    for vllm, engine in started:
        vllm.speed_up()
        engine.close()
        vllm.close()


def settled(standby):
    """Wait until the server's thread has done all its work."""
    done = threading.Event()
    standby._work.put(done.set)
    assert done.wait(60)


def texts(engine, request=REQUEST, cancel=None):
    """Return the first suggestion's text after each event, and the last event."""
    events = list(engine.complete(request, cancel or CancelToken()))
    assert [event.done for event in events] == [False] * (len(events) - 1) + [True]
    return [event.suggestions[0].text for event in events if event.suggestions], events[-1]


def only_grows(shown):
    return all(later.startswith(earlier) for earlier, later in itertools.pairwise(shown))


def alone(engine, request=REQUEST):
    return last(engine, request).suggestions[0].text


def test_without_permission_nothing_is_sent(beside, loaded, local):
    vllm, standby, engine = beside(loaded)
    shown, _ = texts(engine, replace(REQUEST, remote=False))
    engine.prepare(replace(REQUEST, remote=False), CancelToken())
    settled(standby)
    assert shown[-1] == alone(local)
    assert vllm.prompts == []


def test_a_server_that_agrees_changes_no_text(beside, loaded, local):
    vllm, _, engine = beside(loaded)
    shown, event = texts(engine)
    assert shown[-1] == alone(local) == event.suggestions[0].text
    assert only_grows(shown)
    assert len(vllm.prompts) == 1


def test_each_of_the_two_threads_reads_with_a_grammar_of_its_own(beside, loaded, local):
    _, standby, engine = beside(loaded)
    for cursor in CURSORS:
        request = request_at(cursor, filters=False, grammar=GrammarMode.STRICT, remote=True)
        expected = last(local, replace(request, document="alone"))
        _, event = texts(engine, request)
        assert [one.text for one in event.suggestions] == [one.text for one in expected.suggestions]
        assert event.statistics.grammar_off_reason == expected.statistics.grammar_off_reason
    settled(standby)
    assert local.grammars.load("python") is not standby._engine.grammars.load("python")


def test_a_closed_document_leaves_no_grammar_in_either_engine(beside, loaded):
    _, standby, engine = beside(loaded)
    texts(engine, replace(REQUEST, grammar=GrammarMode.STRICT))
    settled(standby)
    assert all(one.held()[MemoryPart.GRAMMARS].object_bytes for one in (engine._local, standby))
    engine.forget(Closing(documents=(REQUEST.document,)))
    settled(standby)
    assert engine.held()[MemoryPart.GRAMMARS].object_bytes == 0


def test_the_grammar_of_a_script_stays_while_its_page_is_open(beside, loaded):
    _, standby, engine = beside(loaded)
    page = replace(REQUEST, prefix="<script>\nlet total = ", suffix="1\n</script>\n", language="html")
    for document in ("other", "page"):
        engine.prepare(replace(page, document=document, grammar=GrammarMode.STRICT), CancelToken())
        settled(standby)
    engine.forget(Closing(documents=("other",)))
    settled(standby)
    assert all(one.held()[MemoryPart.GRAMMARS].object_bytes for one in (engine._local, standby))


def test_the_local_text_is_complete_while_the_server_is_silent(beside, other, local):
    vllm, _, engine = beside(other)
    vllm.slow_down()
    events = engine.complete(REQUEST, CancelToken())
    shown = [next(events)]
    while not shown[-1].whole:
        shown.append(next(events))
    assert shown[-1].suggestions[0].text == alone(local)
    assert not shown[-1].done
    events.close()


def test_a_server_that_is_silent_for_longer_than_its_answers_took_is_not_waited_for(beside, other, local, clock):
    clock.runs = True
    vllm, standby, engine = beside(other)
    for _ in range(20):
        standby.deadline.note(0.01)
    vllm.slow_down()
    events = engine.complete(REQUEST, CancelToken())
    shown = [next(events)]
    assert vllm.waiting.wait(60)
    shown += events
    assert shown[-1].suggestions[0].text == alone(local)
    vllm.speed_up()
    assert vllm.gone.wait(60)


def test_text_that_nobody_can_have_read_is_replaced_once(beside, other, local):
    vllm, _, engine = beside(other)
    theirs = alone(Engine(other))
    local.pace = threading.Semaphore(1)
    vllm.slow_down()
    events = engine.complete(REQUEST, CancelToken())
    ours = next(events).suggestions[0].text
    vllm.speed_up()
    shown = [ours, *(event.suggestions[0].text for event in events)]
    assert not theirs.startswith(ours)
    assert shown[-1] == theirs
    assert only_grows(shown[1:])


def test_text_that_was_read_stays_and_a_manual_request_lists_the_servers_second(beside, other, local, clock):
    vllm, _, engine = beside(other)
    for invoked, count in ((False, 1), (True, 3)):
        vllm.slow_down()
        request = replace(REQUEST, invoked=invoked, suggestions=count)
        theirs = alone(Engine(other), replace(request, suggestions=1))
        events = engine.complete(request, CancelToken())
        shown = [next(events)]
        clock.ahead_s += 2 * UNREAD_S
        vllm.speed_up()
        shown += list(events)
        firsts = [event.suggestions[0].text for event in shown]
        assert only_grows(firsts)
        assert firsts[-1] == alone(local, request)
        assert (theirs in [one.text for one in shown[-1].suggestions[1:2]]) == invoked
        assert len(shown[-1].suggestions) <= count


def test_the_servers_text_comes_first_if_the_local_model_is_slower(beside, other, local):
    _, _, engine = beside(other)
    local.pace = threading.Semaphore(0)
    shown, event = texts(engine)
    assert shown[-1] == alone(Engine(other))
    assert only_grows(shown)
    assert event.stop_reason is not None


def test_alternatives_to_the_servers_suggestion_are_the_local_models(beside, other, local):
    vllm, _, engine = beside(other)
    theirs = alone(Engine(other))
    local.pace = threading.Semaphore(0)
    assert texts(engine, replace(REQUEST, order=1))[0][-1] == theirs
    asked = len(vllm.prompts)
    event = last(engine, replace(REQUEST, suggestions=3, order=2))
    assert [one.text for one in event.suggestions[:2]] == [theirs, alone(local)]
    assert event.whole == len(event.suggestions) <= 3
    assert len(vllm.prompts) == asked
    engine.forget(Closing(documents=(REQUEST.document,)))
    local.pace = threading.Semaphore(0)
    last(engine, replace(REQUEST, suggestions=3))
    assert len(vllm.prompts) == asked + 1


def test_a_manual_request_lists_the_servers_suggestion_first_and_the_local_ones_after_it(beside, other, local):
    _, _, engine = beside(other)
    local.pace = threading.Semaphore(0)
    request = replace(REQUEST, suggestions=4, invoked=True)
    found = [one.text for one in last(engine, request).suggestions]
    assert found[0] == alone(Engine(other), replace(request, suggestions=1))
    assert alone(local, request) in found[1:]
    assert len(set(found)) == len(found) <= 4


@pytest.mark.parametrize("model", ["loaded", "other"])
def test_a_server_that_dies_in_mid_stream_50_times(beside, local, clock, request, model):
    """Every request is answered without an error, what was shown stays, and the server comes back by itself."""
    vllm, standby, engine = beside(request.getfixturevalue(model))
    ours, served = alone(local), 0
    for round_ in range(50):
        vllm.dies_after = round_ % 5
        local.pace = pace = threading.Semaphore(1 << 20 if round_ % 2 else round_ % 3)
        vllm.on_end = lambda pace=pace: pace.release(1 << 10)
        before = len(vllm.prompts)
        shown, event = texts(engine)
        served += len(vllm.prompts) > before
        settled(standby)
        assert event.suggestions[0].text == shown[-1] != ""
        assert only_grows(shown) or model == "other"
        assert sum(not one.startswith(other) for other, one in itertools.pairwise(shown)) <= 1
        if model == "loaded":
            assert shown[-1].startswith(ours[:1])
        assert standby.trouble == "" or "ended in the middle of its reply" in standby.trouble
        clock.ahead_s += MAX_RETRY_S
        vllm.dies_after, local.pace = None, threading.Semaphore(1 << 20)
        texts(engine, replace(REQUEST, document="probe"))
        settled(standby)
    assert served == 50
    texts(engine)
    settled(standby)
    assert standby.trouble == ""


def test_after_the_text_of_a_server_that_died_no_name_is_known(beside, loaded, local):
    vllm, _, engine = beside(loaded)
    vllm.dies_after, local.pace = 2, threading.Semaphore(0)
    vllm.on_end = lambda: local.pace.release(1 << 10)
    shown, _ = texts(engine, replace(REQUEST, names=("zebra",)))
    assert local.completed == 2
    assert local.asked.prefix.removeprefix(REQUEST.prefix) in shown  # the local model's own text may be the first one
    assert local.asked.names == ()


def test_a_server_that_is_not_there_is_tried_at_growing_intervals_by_the_next_requests(beside, loaded, local, clock):
    vllm, standby, engine = beside(loaded)
    vllm.dies_after = 0
    texts(engine)
    settled(standby)
    assert standby.trouble.endswith("The local model goes on alone.")
    waited_s, interval_s = [], FIRST_RETRY_S
    for _ in range(5):
        clock.ahead_s += 0.9 * interval_s
        tries = sum(path == "/version" for path, _ in vllm.requests)
        texts(engine)
        settled(standby)
        assert sum(path == "/version" for path, _ in vllm.requests) == tries
        clock.ahead_s += 0.2 * interval_s
        texts(engine)
        settled(standby)
        assert sum(path == "/version" for path, _ in vllm.requests) == tries + 1
        texts(engine)
        settled(standby)
        waited_s.append(interval_s)
        interval_s = min(2 * interval_s, MAX_RETRY_S)
    assert waited_s[-1] > waited_s[0]
    vllm.dies_after = None
    clock.ahead_s += MAX_RETRY_S
    texts(engine)
    settled(standby)
    assert texts(engine)[0][-1] == alone(local)
    settled(standby)
    assert standby.trouble == ""


def test_a_server_with_other_tokens_is_a_sentence_and_the_local_model_serves(local, server, tmp_path, tiny_gguf):
    source = Path(f"{tiny_gguf}.folder")
    tokenizer = (source / "tokenizer.json").read_text(encoding="utf-8")
    (tmp_path / "tokenizer.json").write_text(tokenizer.replace('"A"', '"\\u0000A"'), encoding="utf-8")
    (tmp_path / "config.json").write_bytes((source / "config.json").read_bytes())
    address = RemoteAddress(server.url, mode="local_first", model=str(tmp_path))
    standby = Standby(lambda cancel: RemoteEngine(RemoteModel.connect(address, "unused", silent, cancel)), lambda: None)
    engine = LocalFirst(local, standby)
    settled(standby)
    assert "has other tokens than the tokenizer of `model`" in standby.trouble
    assert texts(engine)[0][-1] == alone(local)
    engine.close()


def test_answers_that_always_come_too_late_are_a_failure(beside, other, clock):
    clock.runs = True
    vllm, standby, engine = beside(other)
    for _ in range(20):
        standby.deadline.note(0.001)
    vllm.slow_down()
    for _ in range(MAX_MISSES):
        assert standby.trouble == ""
        standby.deadline = Deadline()
        for _ in range(20):
            standby.deadline.note(0.001)
        texts(engine)
    assert f"answered {MAX_MISSES} requests too late" in standby.trouble


def test_a_cancel_ends_both(beside, other, local):
    vllm, _, engine = beside(other)
    vllm.slow_down()
    cancel = CancelToken()
    events = engine.complete(REQUEST, cancel)
    while not next(events).whole:
        pass
    assert vllm.waiting.wait(60)
    canceller = threading.Thread(target=cancel.cancel)
    canceller.start()
    with pytest.raises(CancelledError):
        list(events)
    canceller.join()
    vllm.speed_up()
    assert vllm.gone.wait(60)


def test_a_newer_request_ends_the_older_one_at_the_server(beside, other):
    vllm, _, engine = beside(other)
    vllm.slow_down()
    older = engine.complete(REQUEST, CancelToken())
    while not next(older).whole:
        pass
    assert vllm.waiting.wait(60)
    next(engine.complete(replace(REQUEST, document="b"), CancelToken()))
    assert list(older)[-1].done
    vllm.speed_up()
    assert vllm.gone.wait(60)


def test_a_request_that_another_one_waits_for_does_not_wait_for_the_server(beside, other, local):
    vllm, _, engine = beside(other)
    vllm.slow_down()
    cancel = CancelToken()
    events = engine.complete(REQUEST, cancel)
    while not next(events).whole:
        pass
    cancel.hurry()
    assert [event.done for event in events] == [True]


def test_the_server_gets_the_snippets_of_the_local_prompt_and_prepares(beside, loaded):
    vllm, standby, engine = beside(loaded)
    other = WorkspaceFile("queue.py", "class Queue:\n    def push(self, item):\n        self.items.append(item)\n")
    engine.prepare(REQUEST, CancelToken())
    settled(standby)
    for _ in engine.update_workspace(WorkspaceUpdate("w", (other,)), CancelToken()):
        pass
    engine.prepare(replace(REQUEST, workspace="w", path="stack.py"), CancelToken())
    settled(standby)
    _handshake, without, with_snippet = (
        len(body["prompt"]) for path, body in vllm.requests if path == "/v1/completions" and body["priority"] == 1
    )
    assert with_snippet > without + 10


def test_the_deadline_is_that_of_95_percent_of_the_last_answers():
    deadline = Deadline()
    assert deadline.seconds == 2.0
    for wait_s in (*[0.1] * 95, *[0.5] * 5):
        deadline.note(wait_s)
    assert deadline.seconds == 0.5  # 5 of the last 64
    for _ in range(64):
        deadline.note(0.2)
    assert deadline.seconds == 0.2
    for _ in range(4):
        deadline.note(0.4)  # waits in vain make it longer
    assert deadline.seconds == 0.4
    for _ in range(64):
        deadline.note(100.0)
    assert deadline.seconds == 2.0
