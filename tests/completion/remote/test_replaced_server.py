"""A model server that is replaced by one of another model: its tokens are compared before a request goes there."""

from __future__ import annotations

import json

import pytest

from completion.cancellation import CancelToken
from completion.errors import RemoteServerError
from completion.progress import silent
from completion.remote.address import RemoteAddress
from completion.remote.engine import QUIET_S, RemoteEngine, RemoteModel
from completion.request import GrammarMode
from tests.completion.remote.test_remote_engine import CURSORS, last, request_at

REQUEST = request_at(CURSORS[0], filters=False, grammar=GrammarMode.OFF)
COMPARISONS = {"/tokenize", "/detokenize"}


class Clock:
    seconds = 0.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def engine(server, tiny_gguf, clock):
    address = RemoteAddress(server.url)
    model = RemoteModel.connect(address, f"{tiny_gguf}.folder", silent, CancelToken())
    server.requests.clear()
    return RemoteEngine(model, clock=clock)


def changed(**fields):
    """Return a way to send a recorded JSON object with other fields."""

    def send(reply):
        found = json.loads(reply.recorded.partition(b"\r\n\r\n")[2])
        reply.send(b"HTTP/1.0 200 OK\r\n\r\n" + json.dumps(found | fields).encode())

    return send


def paths(server):
    return [path for path, _ in server.requests]


def test_a_server_with_other_tokens_after_a_failure_gets_no_request_until_it_has_ours_again(server, engine):
    server.sends["/completion"] = lambda reply: reply.send(b"")
    with pytest.raises(RemoteServerError, match="ended in the middle"):
        last(engine, REQUEST)
    server.sends = {"/detokenize": changed(content="other tokens")}
    server.requests.clear()
    for _ in range(2):
        with pytest.raises(RemoteServerError, match="has other tokens than the tokenizer of `model`"):
            last(engine, REQUEST)
        with pytest.raises(RemoteServerError, match="has other tokens than the tokenizer of `model`"):
            engine.prepare(REQUEST, CancelToken())
    assert "/completion" not in paths(server)
    server.sends.clear()
    assert last(engine, REQUEST).suggestions


@pytest.mark.parametrize("field", ["model_alias", "model_path"])
def test_a_server_that_has_another_model_after_a_pause_is_compared(server, engine, clock, field):
    assert last(engine, REQUEST).suggestions
    server.sends = {"/props": changed(**{field: "another.gguf"}), "/detokenize": changed(content="other tokens")}
    assert last(engine, REQUEST).suggestions
    clock.seconds = QUIET_S + 1
    with pytest.raises(RemoteServerError, match="has other tokens than the tokenizer of `model`"):
        last(engine, REQUEST)


def test_another_model_with_our_tokens_is_used_with_the_room_that_it_has(server, engine, clock):
    clock.seconds = QUIET_S + 1
    settings = {"n_ctx": 200}
    server.sends = {"/props": changed(model_alias="larger", default_generation_settings=settings)}
    request = request_at(CURSORS[0], prefix="value = 1\n" * 400 + "x = ", filters=False, grammar=GrammarMode.OFF)
    with pytest.raises(RemoteServerError, match="HTTP 599"):  # no such prompt was recorded
        last(engine, request)
    assert set(paths(server)) >= COMPARISONS
    prompts = [body["prompt"] for path, body in server.requests if path == "/completion"]
    assert 0 < max(map(len, prompts)) < settings["n_ctx"]


def test_the_same_server_is_compared_once_after_a_failure_and_after_a_pause_only_asked_for_its_model(
    server, engine, clock
):
    for _ in range(2):
        assert last(engine, REQUEST).suggestions
    assert set(paths(server)) == {"/completion"}
    clock.seconds = QUIET_S + 1
    server.requests.clear()
    for _ in range(2):
        assert last(engine, REQUEST).suggestions
    assert paths(server) == ["/props", "/completion", "/completion"]
    server.sends["/completion"] = lambda reply: reply.send(b"")
    with pytest.raises(RemoteServerError):
        last(engine, REQUEST)
    server.sends.clear()
    server.requests.clear()
    for _ in range(2):
        assert last(engine, REQUEST).suggestions
    assert set(paths(server)[:-2]) >= COMPARISONS
    assert paths(server)[-2:] == ["/completion"] * 2
