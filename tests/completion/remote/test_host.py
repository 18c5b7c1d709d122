"""A host with a model server: its command line, its start, and what its status says while the server fails."""

from __future__ import annotations

import queue

import pytest

from completion.edits import NextEditRequest, NextEdits
from completion.errors import RemoteInterruptedError, RemoteServerError
from completion.host.engine_loader import load_remote_engine
from completion.host.engine_protocol import LoadedEngine
from completion.host.job import Job, Urgency
from completion.host.metrics import HostMetrics
from completion.host.process.address import host_address
from completion.host.process.lifetime import parse_settings
from completion.host.server import HostSettings
from completion.host.state import HostPhase, HostState
from completion.host.worker import EngineWorker
from completion.progress import silent
from completion.remote.address import RemoteAddress
from completion.request import GrammarMode
from lsp_server.cli.checks import check_server
from tests.completion.remote.test_remote_engine import CURSORS, request_at
from tests.completion.remote.test_replaced_server import changed

REQUEST = request_at(CURSORS[0], filters=False, grammar=GrammarMode.OFF)
EVERYTHING = RemoteAddress("https://gpu.example:1", token_file="f", token_env="e", ca_file="c", plain_http=True)


def test_the_command_line_of_a_host_names_the_server_and_where_its_token_is():
    assert parse_settings(EVERYTHING.arguments()).remote == EVERYTHING
    assert parse_settings([]).remote == RemoteAddress()
    assert RemoteAddress(token_file="f").arguments() == []


def test_a_host_with_a_server_is_another_host_than_the_one_with_the_local_model(runtime):
    addresses = [RemoteAddress(), RemoteAddress("https://a"), RemoteAddress("https://b"), EVERYTHING]
    names = {host_address("default", "auto", address.arguments()).name for address in addresses}
    assert len(names) == len(addresses)
    assert host_address("default", "auto").name in names


@pytest.mark.parametrize("urgency", [Urgency.COMPLETE, Urgency.AHEAD, Urgency.PREPARE])
def test_the_status_says_where_text_goes_and_what_fails_until_it_works_again(server, tiny_gguf, urgency):
    said: queue.Queue[str] = queue.Queue()
    state = HostState("m")

    def load(progress):
        settings = HostSettings(model=f"{tiny_gguf}.folder", remote=RemoteAddress(server.url))
        loaded = load_remote_engine(settings, progress)
        state.ready(loaded.model_name, loaded.device, loaded.context_tokens, loaded.remark)
        return loaded

    def note(sentence, code):
        state.trouble(sentence, code)
        said.put(sentence)

    worker = EngineWorker(load, HostMetrics(), queue_limit=4)
    loaded: queue.Queue[object] = queue.Queue()
    worker.start(silent, loaded.put, lambda: None, note)
    outcome = loaded.get(timeout=100)
    assert state.status.sentence == f"Ready. The text around the cursor goes to {server.url}.", outcome
    assert (state.status.model, state.status.context_tokens, state.status.code) == ("tiny", 4096, "")
    assert server.url in state.status.device

    events: queue.Queue[object] = queue.Queue()
    server.sends["/completion"] = lambda reply: reply.send(reply.recorded[:500])
    worker.submit(Job(Urgency.COMPLETE, REQUEST, events.put))
    assert said.get(timeout=100).endswith("ended in the middle of its reply. Try again.")
    assert (state.status.phase, state.status.code) == (HostPhase.READY, "remote_server")
    server.sends.clear()
    worker.submit(Job(urgency, REQUEST, events.put))
    assert said.get(timeout=100) == ""
    assert state.status.sentence.startswith("Ready.")
    assert state.status.code == ""
    worker.stop(100)


def test_the_status_names_the_model_that_the_server_has_now(server, tiny_gguf):
    state, loaded = HostState("m"), queue.Queue[LoadedEngine]()

    def report(outcome):
        state.ready(outcome.model_name, outcome.device, outcome.context_tokens, outcome.remark)
        loaded.put(outcome)

    settings = HostSettings(model=f"{tiny_gguf}.folder", remote=RemoteAddress(server.url))
    worker = EngineWorker(lambda progress: load_remote_engine(settings, progress), HostMetrics(), queue_limit=4)
    worker.start(silent, report, lambda: None, state.trouble)
    loaded.get(timeout=100)
    assert (state.status.model, state.status.context_tokens) == ("tiny", 4096)

    events: queue.Queue[object] = queue.Queue()
    server.sends["/completion"] = lambda reply: reply.send(reply.recorded[:500])  # it ends, and another one starts
    worker.submit(Job(Urgency.COMPLETE, REQUEST, events.put))
    assert isinstance(events.get(timeout=100), RemoteServerError)
    new = {"/props": changed(model_alias="larger", default_generation_settings={"n_ctx": 3000})}
    server.sends |= new  # it ends, too
    worker.submit(Job(Urgency.COMPLETE, REQUEST, events.put))
    worker.submit(Job(Urgency.NEXT_EDIT, NextEditRequest(("x",), ()), events.put))
    worker.submit(Job(Urgency.NEXT_EDIT, NextEditRequest(("y",), ()), events.put))  # begins once the first has ended
    assert [type(events.get(timeout=100)) for _ in range(3)] == [RemoteInterruptedError, NextEdits, NextEdits]
    assert (state.status.code, loaded.empty()) == ("remote_server", True)
    server.sends = new
    worker.submit(Job(Urgency.COMPLETE, REQUEST, events.put))
    loaded.get(timeout=100)
    assert (state.status.phase, state.status.model, state.status.context_tokens) == (HostPhase.READY, "larger", 3000)
    assert state.status.sentence == f"Ready. The text around the cursor goes to {server.url}."
    worker.stop(100)
    assert loaded.empty()


def test_the_doctor_names_the_server_and_compares_the_tokens(server, tiny_gguf):
    found, tokens = check_server(f"{tiny_gguf}.folder", RemoteAddress(server.url))
    assert (found.state, tokens.state) == ("ok", "ok")
    assert found.found.startswith("tiny.gguf"[:4])
    assert server.url in found.found
    assert " ms a round trip" in found.found
    assert tokens.found.startswith("the server's 704 tokens")
    server.token = "open"
    (refused,) = check_server(f"{tiny_gguf}.folder", RemoteAddress(server.url))
    assert (refused.state, refused.found) == ("fail", "remote_server")
    assert "refuses the token" in refused.advice
