"""llama.cpp's `/completion`, and several completions in one reply."""

import asyncio
import json

from completion.request import Sampling
from tests.completion.host.dialects.test_ollama import RecordingEngine
from tests.completion.host.paced_engine import PacedEngine


async def test_completion_reads_markers_and_streams(start_host):
    engine = RecordingEngine()
    client = await start_host(engine)
    body = {"prompt": "<|fim_prefix|>P<|fim_suffix|>S<|fim_middle|>", "n_predict": 3, "stream": True, "n_probs": 2}
    async with client.stream("POST", "/completion", json=body) as reply:
        chunks = [json.loads(line[6:]) async for line in reply.aiter_lines() if line]
    assert "".join(chunk["content"] for chunk in chunks) == " 0 1 2"
    assert [chunk["stop"] for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert [(request.prefix, request.suffix, request.layout) for request in engine.requests] == [("P", "S", None)]


async def test_max_tokens_is_another_name_of_n_predict_and_both_are_bounded(start_host):
    engine = RecordingEngine()
    client = await start_host(engine)
    for fields in ({"max_tokens": 5}, {"n_predict": 4, "max_tokens": 5}, {"n_predict": -1}, {"n_predict": 9999}, {}):
        assert (await client.post("/completion", json={"prompt": ["x"], **fields})).status_code == 200
    assert [request.max_tokens for request in engine.requests] == [5, 4, 128, 128, 128]


async def test_several_completions_are_a_list(start_host):
    client = await start_host(PacedEngine())
    body = {"input_prefix": "x", "n_predict": 2, "n_cmpl": 3, "response_fields": ["content"]}
    reply = (await client.post("/infill", json=body)).json()
    assert reply == [{"content": " 0 1"}, {"content": " or 0"}, {"content": " or 1"}]
    assert (await client.post("/infill", json=body | {"n_cmpl": 1})).json() == {"content": " 0 1"}


async def test_no_prediction_only_warms_the_cache(start_host):
    engine = PacedEngine()
    client = await start_host(engine)
    assert (await client.post("/completion", json={"prompt": "x", "n_predict": 0})).json()["content"] == ""
    assert await asyncio.to_thread(engine.readied.acquire, timeout=60)
    assert len(engine.prepared) == 1


async def test_options_that_are_null_have_their_defaults_and_one_stop_string_may_stand_alone(start_host):
    engine = RecordingEngine()
    client = await start_host(engine)
    nulls = dict.fromkeys(("temperature", "top_p", "min_p", "seed", "stop", "stream", "n_cmpl", "response_fields"))
    reply = await client.post("/completion", json={"prompt": "x", "n_predict": 3} | nulls)
    assert (reply.status_code, reply.json()["content"]) == (200, " 0 1 2")
    reply = await client.post("/infill", json={"input_prefix": "x", "input_extra": None, **nulls})
    assert reply.status_code == 200, reply.text
    reply = await client.post("/infill", json={"input_prefix": "x", "stop": " 2"})
    assert reply.json()["content"] == " 0 1"
    assert [request.sampling for request in engine.requests] == [Sampling()] * 3
