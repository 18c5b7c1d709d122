"""Mistral's interface for filling in, whole and streamed, DeepSeek's address, and limits that all interfaces share."""

import json
from dataclasses import replace

import pytest

from tests.completion.host.dialects.test_ollama import RecordingEngine
from tests.completion.host.paced_engine import PacedEngine


async def test_a_completion_is_the_message_of_an_assistant(start_host):
    client = await start_host(PacedEngine())
    body = {"model": "codestral-latest", "prompt": "def f(", "suffix": "return a + b", "max_tokens": 3}
    reply = (await client.post("/v1/fim/completions", json=body)).json()
    assert reply["object"] == "chat.completion"
    assert reply["choices"][0]["message"]["content"] == " 0 1 2"
    assert reply["choices"][0]["finish_reason"] == "length"
    assert reply["usage"]["completion_tokens"] == 3


async def test_a_stream_has_deltas_and_an_end(start_host):
    client = await start_host(PacedEngine())
    body = {"prompt": "x", "suffix": "", "max_tokens": 50, "stop": " 3 4", "stream": True}
    async with client.stream("POST", "/v1/fim/completions", json=body) as reply:
        data = [line.removeprefix("data: ") async for line in reply.aiter_lines() if line]
    assert data[-1] == "[DONE]"
    choices = [json.loads(message)["choices"][0] for message in data[:-1]]
    assert "".join(choice["delta"]["content"] for choice in choices) == " 0 1 2"
    assert [choice["finish_reason"] for choice in choices] == [None] * (len(choices) - 1) + ["stop"]


async def test_fields_reach_the_engine(start_host):
    engine = RecordingEngine()
    client = await start_host(engine)
    body = {"prompt": "P", "suffix": "S", "temperature": 0.3, "top_p": 0.8, "random_seed": 5, "min_tokens": 2}
    assert (await client.post("/v1/fim/completions", json=body)).status_code == 200
    assert (await client.post("/v1/fim/completions", json={"prompt": "[SUFFIX]S[PREFIX]P"})).status_code == 200
    assert [(request.prefix, request.suffix) for request in engine.requests] == [("P", "S")] * 2
    sampling = engine.requests[0].sampling
    assert (sampling.temperature, sampling.top_p, sampling.seed) == (0.3, 0.8, 5)


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/v1/fim/completions", {"random_seed": 1 << 63}, "random_seed is 9.22337e+18;"),
        ("/v1/completions", {"n": 200}, "n is 200; it must be between 1 and 16."),
        ("/v1/completions", {"temperature": -1}, "temperature is -1;"),
        ("/completion", {"n_cmpl": 0}, "n_cmpl is 0;"),
    ],
)
async def test_a_number_out_of_range_is_named_as_the_client_names_it(start_host, path, body, words):
    client = await start_host(PacedEngine())
    reply = await client.post(path, json={"prompt": "P", **body})
    assert reply.status_code == 400
    error = reply.json()
    assert error.get("error", error)["message"].startswith(words)


class VerifyingEngine(PacedEngine):
    """An engine whose last step verifies four tokens more than the limit permits."""

    def complete(self, request, cancel):
        for event in super().complete(request, cancel):
            counts = event.statistics
            yield replace(event, statistics=counts and replace(counts, generated_tokens=counts.generated_tokens + 4))


@pytest.mark.parametrize("path", ["/v1/fim/completions", "/v1/completions"])
async def test_a_reply_has_no_more_tokens_than_its_limit(start_host, path):
    client = await start_host(VerifyingEngine())
    reply = (await client.post(path, json={"prompt": "P", "max_tokens": 3})).json()
    assert reply["usage"] == {"prompt_tokens": 1, "completion_tokens": 3, "total_tokens": 4}


async def test_deepseeks_address_fills_in(start_host):
    engine = RecordingEngine()
    client = await start_host(engine)
    body = {"model": "deepseek-chat", "prompt": "P", "suffix": "S", "max_tokens": 2}
    reply = (await client.post("/beta/completions", json=body)).json()
    assert reply["choices"][0]["text"] == " 0 1"
    assert [(request.prefix, request.suffix) for request in engine.requests] == [("P", "S")]
