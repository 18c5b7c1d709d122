"""Ollama's interface: one line of JSON per piece of text, counts and times in the last."""

import json

import pytest

from completion.request import CompletionEvent, StopReason, Suggestion
from tests.completion.host.paced_engine import PacedEngine


class RecordingEngine(PacedEngine):
    """A paced engine that keeps its requests."""

    def __init__(self):
        super().__init__()
        self.requests = []

    def complete(self, request, cancel):
        self.requests.append(request)
        yield from super().complete(request, cancel)


async def lines_of(client, body):
    async with client.stream("POST", "/api/generate", json=body) as reply:
        assert reply.headers["content-type"] == "application/x-ndjson"
        return [json.loads(line) async for line in reply.aiter_lines()]


async def test_a_reply_streams_as_lines_unless_the_client_refuses(start_host):
    client = await start_host(PacedEngine())
    body = {"model": "qwen2.5-coder:0.5b", "prompt": "def f(", "suffix": "\n", "options": {"num_predict": 4}}
    lines = await lines_of(client, body)
    assert "".join(line["response"] for line in lines) == " 0 1 2 3"
    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
    assert len(lines) > 2
    whole = (await client.post("/api/generate", json=body | {"stream": False})).json()
    assert (whole["response"], whole["done"], whole["done_reason"]) == (" 0 1 2 3", True, "length")
    for last in (lines[-1], whole):
        assert last["eval_count"] == 4
        assert last["prompt_eval_count"] > 0
        assert last["total_duration"] > 0
        assert {"load_duration", "prompt_eval_duration", "eval_duration", "created_at", "model"} <= set(last)


async def test_options_reach_the_engine_and_others_are_ignored(start_host):
    engine = RecordingEngine()
    client = await start_host(engine)
    options = {"num_predict": -1, "temperature": 0.2, "top_p": 0.95, "min_p": 0.1, "seed": 7, "num_ctx": 512}
    body = {"prompt": "P", "suffix": "", "stream": False, "options": options, "keep_alive": "5m", "system": "x"}
    assert (await client.post("/api/generate", json=body)).status_code == 200
    (request,) = engine.requests
    assert (request.prefix, request.suffix, request.layout, request.max_tokens) == ("P", "", None, 128)
    sampling = request.sampling
    assert (sampling.temperature, sampling.top_p, sampling.min_p, sampling.seed) == (0.2, 0.95, 0.1, 7)


async def test_stop_strings_end_the_text_whole_and_streamed(start_host):
    client = await start_host(PacedEngine())
    for stop in ([" 2 3", "none"], " 2 3"):
        body = {"prompt": "x", "options": {"stop": stop, "num_predict": 50}}
        lines = await lines_of(client, body)
        assert "".join(line["response"] for line in lines) == " 0 1"
        assert lines[-1]["done_reason"] == "stop"


@pytest.mark.parametrize(
    ("changed", "prefix", "suffix"),
    [
        ({}, "P", "S"),
        ({"raw": True}, "P", "S"),
        ({"raw": True, "suffix": "ignored"}, "P", "S"),
        ({"suffix": "T"}, "<|fim_prefix|>P<|fim_suffix|>S<|fim_middle|>", "T"),
        ({"suffix": ""}, "<|fim_prefix|>P<|fim_suffix|>S<|fim_middle|>", ""),
    ],
)
async def test_markers_are_read_in_prompts_and_not_in_documents(start_host, changed, prefix, suffix):
    engine = RecordingEngine()
    client = await start_host(engine)
    body = {"prompt": "<|fim_prefix|>P<|fim_suffix|>S<|fim_middle|>", "stream": False, **changed}
    assert (await client.post("/api/generate", json=body)).status_code == 200
    assert [(request.prefix, request.suffix) for request in engine.requests] == [(prefix, suffix)]


async def test_a_request_without_a_prompt_only_says_that_the_model_is_loaded(start_host):
    engine = RecordingEngine()
    client = await start_host(engine)
    reply = (await client.post("/api/generate", json={"model": "any", "keep_alive": 0})).json()
    assert (reply["response"], reply["done"], reply["done_reason"]) == ("", True, "load")
    assert engine.requests == []


@pytest.mark.parametrize("field", [{"format": "json"}, {"images": ["aGk="]}, {"think": True}])
async def test_what_the_engine_does_not_have_is_refused(start_host, field):
    client = await start_host(PacedEngine())
    reply = await client.post("/api/generate", json={"prompt": "x", **field})
    assert reply.status_code == 400
    assert next(iter(field)) in reply.json()["error"]


async def test_an_error_within_a_stream_is_a_line(start_host):
    client = await start_host(PacedEngine())
    assert await lines_of(client, {"prompt": "too long"}) == [{"error": "The prompt is too long. Send less text."}]


async def test_clients_learn_the_model_and_that_it_fills_in(start_host):
    client = await start_host(PacedEngine())
    (model,) = (await client.get("/api/tags")).json()["models"]
    assert model["name"] == "paced"
    shown = (await client.post("/api/show", json={"name": "codellama:7b"})).json()
    assert "insert" in shown["capabilities"]
    assert ".Suffix" in shown["template"]
    architecture = shown["model_info"]["general.architecture"]
    assert shown["model_info"][f"{architecture}.context_length"] == 1000
    assert shown["parameters"].split() == ["num_ctx", "1000"]
    assert (await client.get("/api/version")).json()["version"].count(".") == 2


class ClosingEngine(PacedEngine):
    """An engine whose finished text replaces the bracket after the cursor, which its growing text has already."""

    def complete(self, request, cancel):
        yield CompletionEvent((Suggestion("a, b"),))
        yield CompletionEvent((Suggestion("a, b)"),))
        yield CompletionEvent((Suggestion("a, b)", replace_after=1),), done=True, stop_reason=StopReason.LINE_END)


async def test_a_stream_never_repeats_the_bracket_after_the_cursor(start_host):
    client = await start_host(ClosingEngine())
    lines = await lines_of(client, {"prompt": "f(", "suffix": ")\n"})
    assert "".join(line["response"] for line in lines) == "a, b"
    lines = await lines_of(client, {"prompt": "f(", "suffix": "\n"})
    assert "".join(line["response"] for line in lines) == "a, b)"
