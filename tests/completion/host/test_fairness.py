"""Clients that share a host: whose step is next. Each permit lets the engine compute one step, whoever's it is."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import httpx
import pytest
from httpx_sse import aconnect_sse

from completion.host import job, job_queue
from completion.host.process.clients import CLIENT_HEADER
from completion.host.server import HostSettings
from completion.request import StopReason
from tests.completion.host.paced_engine import PacedEngine
from tests.completion.host.test_requests import acquire, body, read_events, until_waiting


class Typist:
    """A request that is read event by event."""

    def __init__(self, client: httpx.AsyncClient, name: str, **fields: object) -> None:
        self._client, self._headers, self._fields = client, {CLIENT_HEADER: name}, fields

    @asynccontextmanager
    async def asks(self) -> AsyncIterator["Typist"]:
        message = body(**self._fields)
        async with aconnect_sse(self._client, "POST", "/v1/complete", json=message, headers=self._headers) as source:
            assert source.response.status_code == 200, await source.response.aread()
            self._events = source.aiter_sse()
            yield self

    async def reads(self) -> dict:
        async with asyncio.timeout(60):
            return json.loads((await anext(self._events)).data)

    async def reads_text(self) -> str:
        return (await self.reads())["suggestions"][0]["text"]


async def test_a_first_text_waits_for_one_step_of_another_documents_answer(start_host):
    engine = PacedEngine(gated=True)
    client = await start_host(engine)
    long = Typist(client, "ada", document="long", max_tokens=50)
    short = Typist(client, "bob", document="short", max_tokens=2)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(long.asks())
        engine.permits.release()
        assert await long.reads_text() == " 0"
        await stack.enter_async_context(short.asks())
        await until_waiting(client, 1)
        engine.permits.release(2)  # the step that runs, and the first one of the other document
        assert await long.reads_text() == " 0 1"
        assert await short.reads_text() == " 0"
        engine.permits.release(100)
        texts = [await long.reads_text() for _ in range(49)]
        assert texts[-1] == "".join(f" {number}" for number in range(50))
        assert [await short.reads_text() for _ in range(2)] == [" 0 1"] * 2


async def test_a_suggestion_without_a_document_does_not_wait_for_the_end_of_a_conversation(start_host, monkeypatch):
    monkeypatch.setattr(job_queue, "LONG_S", 0.0)
    engine = PacedEngine(gated=True)
    client = await start_host(engine)
    talk = {"messages": [{"role": "user", "content": "Explain."}], "max_tokens": 50, "stream": True}
    engine.permits.release()
    async with client.stream("POST", "/v1/chat/completions", json=talk) as conversation:
        lines = conversation.aiter_lines()
        assert '" 0"' in await anext(lines)
        await acquire(engine.paused)
        completion = asyncio.create_task(client.post("/infill", json={"input_prefix": "x", "n_predict": 2}))
        await until_waiting(client, 1)
        engine.permits.release(10)  # for the suggestion, and for a fifth of the conversation
        async with asyncio.timeout(60):
            assert (await completion).json()["content"] == " 0 1"
        engine.permits.release(100)
        assert [line async for line in lines if line][-1] == "data: [DONE]"


async def test_an_old_answer_is_completed_before_another_one_begins(start_host, monkeypatch):
    monkeypatch.setattr(job, "WHOLE_S", 0.0)
    engine = PacedEngine(gated=True)
    client = await start_host(engine)
    old, new = (Typist(client, name, document=name, max_tokens=3) for name in ("old", "new"))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(old.asks())
        await acquire(engine.began)
        await stack.enter_async_context(new.asks())
        await until_waiting(client, 1)
        engine.permits.release(3)
        assert [await old.reads_text() for _ in range(4)][-1] == " 0 1 2"
        await acquire(engine.ended)
        engine.permits.release(3)
        assert await new.reads_text() == " 0"


async def test_requests_without_a_document_share_a_cache_and_so_run_one_after_the_other(start_host):
    engine = PacedEngine(gated=True)
    client = await start_host(engine)
    tasks = [asyncio.create_task(read_events(client, body(max_tokens=5)))]
    await acquire(engine.began)
    tasks.append(asyncio.create_task(read_events(client, body(max_tokens=1))))
    await until_waiting(client, 1)
    engine.permits.release(4)
    for _ in range(4):
        await acquire(engine.stepped)
    assert len(engine.started) == 1
    engine.permits.release(2)
    assert [(await task)[-1][1]["suggestions"][0]["text"] for task in tasks] == [" 0 1 2 3 4", " 0"]


async def test_a_superseded_answer_ends_before_the_newer_request_of_its_document_begins(start_host):
    engine = PacedEngine(gated=True)
    client = await start_host(engine)
    first = Typist(client, "ada", document="a", max_tokens=50)
    other = Typist(client, "bob", document="b", max_tokens=1)
    newer = Typist(client, "ada", document="a", max_tokens=1)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(first.asks())
        await acquire(engine.began)
        await stack.enter_async_context(other.asks())
        await until_waiting(client, 1)
        engine.permits.release()
        await acquire(engine.began)  # the other document's first step runs, the first document's second one waits
        await stack.enter_async_context(newer.asks())
        await until_waiting(client, 2)
        engine.permits.release()
        await acquire(engine.began)
        assert engine.started == ["a\0ada", "b\0bob", "a\0ada"]
        assert engine.ended.acquire(blocking=False)
        assert await first.reads_text() == " 0"
        assert (await first.reads())["dropped"] == "superseded"
        engine.permits.release()
        assert await newer.reads_text() == " 0"


@pytest.mark.parametrize(("whose", "prepared"), [("bob", ["a\0ada"]), ("ada", [])])
async def test_a_preparation_starts_again_after_another_clients_completion_but_not_after_its_own(
    start_host, whose, prepared
):
    engine = PacedEngine(gated=True)
    client = await start_host(engine)
    reply = await client.post("/v1/prepare", json=body(document="a"), headers={CLIENT_HEADER: "ada"})
    assert reply.status_code == 202
    await acquire(engine.readying)
    typist = Typist(client, whose, document="b", max_tokens=1)
    async with typist.asks():
        await until_waiting(client, 1)
        engine.permits.release(2)
        assert await typist.reads_text() == " 0"
        assert (await typist.reads())["stop_reason"] == StopReason.MAX_TOKENS.value
    assert engine.prepared == []
    engine.permits.release()
    update = {"workspace": "after all others"}
    assert (await client.post("/v1/workspace", json=update)).status_code == 202
    for _ in range(2 + len(prepared)):  # the completion, the update, and the preparation
        await acquire(engine.ended)
    assert engine.prepared == prepared


async def test_the_first_request_of_each_client_runs_before_the_second_ones(start_host):
    engine = PacedEngine(gated=True)
    client = await start_host(engine)
    typists = [
        Typist(client, name, document=document, max_tokens=1)
        for name, document in (("ada", "running"), ("ada", "a1"), ("ada", "a2"), ("bob", "b1"))
    ]
    async with AsyncExitStack() as stack:
        for waiting, typist in enumerate(typists):
            await stack.enter_async_context(typist.asks())
            await (until_waiting(client, waiting) if waiting else acquire(engine.began))
        engine.permits.release(10)
        for typist in typists:
            assert await typist.reads_text() == " 0"
    assert [key.partition("\0")[0] for key in engine.started] == ["running", "a1", "b1", "a2"]


async def test_a_client_with_a_full_queue_is_told_so_and_another_one_is_served(start_host):
    engine = PacedEngine(gated=True)
    client = await start_host(engine, HostSettings(queue_limit=2))
    async with AsyncExitStack() as stack:
        for number in range(3):
            await stack.enter_async_context(Typist(client, "ada", document=f"a{number}").asks())
            await (until_waiting(client, number) if number else acquire(engine.began))
        full = await client.post("/v1/complete", json=body(document="a3"), headers={CLIENT_HEADER: "ada"})
        assert (full.status_code, full.json()["code"]) == (429, "queue_full")
        assert "2 of your requests" in full.json()["message"]
        other = Typist(client, "bob", document="b", max_tokens=1)
        await stack.enter_async_context(other.asks())
        engine.permits.release(100)
        assert await other.reads_text() == " 0"


async def test_24_typists_at_once_are_all_served(start_host):
    engine = PacedEngine(gated=True)
    client = await start_host(engine)
    async with AsyncExitStack() as stack:
        typists = [Typist(client, f"typist {number}", document="d", max_tokens=3) for number in range(24)]
        for waiting, typist in enumerate(typists):
            await stack.enter_async_context(typist.asks())
            await (until_waiting(client, waiting) if waiting else acquire(engine.began))
        engine.permits.release(24)  # the step that runs, then a first one for each of the others
        assert [await typist.reads_text() for typist in typists] == [" 0"] * 24
        engine.permits.release(100)
        for typist in typists:
            texts = [await typist.reads_text() for _ in range(3)]
            assert texts[-1] == " 0 1 2"
