"""Clients that vanish during a stream, in the queue or while the model loads: their jobs end."""

import asyncio
import json
import socket
import struct
import threading

import pytest

from completion.edits import NextEditRequest
from completion.host.metrics import HostMetrics
from completion.host.process.address import endpoint_at
from completion.host.process.clients import HostClients
from completion.host.server import HostSettings
from completion.host.services import Host, RequestStream
from completion.host.state import HostState, IdleWatch
from completion.host.worker import EngineWorker
from completion.request import CompletionRequest
from tests.completion.host.conftest import authorization, raw_connection, running_host
from tests.completion.host.paced_engine import PacedEngine
from tests.completion.host.test_requests import acquire, until_waiting

LONG = 100
REQUESTS = {
    "/v1/complete": {"prefix": "one", "max_tokens": LONG},
    "/v1/complete?wait=1": {"prefix": "one", "max_tokens": LONG},
    "/infill": {"input_prefix": "one", "n_predict": LONG},
    "/infill#stream": {"input_prefix": "one", "n_predict": LONG, "stream": True},
    "/v1/completions": {"prompt": "one", "max_tokens": LONG},
    "/v1/completions#stream": {"prompt": "one", "max_tokens": LONG, "stream": True},
    "/v1/completions#tabby": {"segments": {"prefix": "one"}},
}


def ask(folder, address):
    """Send a request and return its socket, which resets the connection when it is closed."""
    endpoint = endpoint_at(folder / "test.sock")
    client = raw_connection(endpoint)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    body = json.dumps(REQUESTS[address]).encode()
    head = f"POST {address.partition('#')[0]} HTTP/1.1\r\nHost: d\r\nContent-Length: {len(body)}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in authorization(endpoint).items())
    client.sendall(f"{head}\r\n".encode() + body)
    return client


@pytest.fixture
async def gated_worker():
    """A worker whose engine waits for a permit before each step, and the engine."""
    engine, ready = PacedEngine(gated=True), threading.Event()
    worker = EngineWorker(engine.load, HostMetrics(), queue_limit=16)
    worker.start(lambda *_: None, lambda _: ready.set(), lambda: None)
    assert await asyncio.to_thread(ready.wait, 20)
    yield worker, engine
    engine.permits.release(LONG)
    worker.stop(20)


def next_edit_of(user):
    return NextEditRequest(("one",), (), document=f"d\0w\0{user}")


@pytest.mark.parametrize("kind", ["in advance", "next edits"])
async def test_an_interrupted_request_whose_client_has_gone_does_not_start_again(gated_worker, kind):
    worker, engine = gated_worker
    state, clients = HostState("paced"), HostClients(lambda _: None)
    state.ready("paced", "test", 1000, "")
    host = Host(state, worker, clients, HostMetrics(), IdleWatch(0, lambda: None), started=0)
    if kind == "in advance":
        ahead = CompletionRequest("one", document="d\0w\0ada", max_tokens=20, ahead=True)
        gone = RequestStream(host, ahead)
    else:
        gone = RequestStream(host, next_edit_of("ada"))
    gone.submit()
    await acquire(engine.began)
    other = RequestStream(host, CompletionRequest("two", document="d\0w\0bob", max_tokens=2))
    other.submit()
    gone.close()
    engine.permits.release(LONG)
    async with asyncio.timeout(60):
        assert [event async for event in other.answers()][-1].done
        last = RequestStream(host, next_edit_of("carol"))
        last.submit()
        await anext(last.answers())  # which is after all others
    began_later = [engine.began.acquire(blocking=False) for _ in range(3)]
    assert began_later == [True, True, False]


async def until_idle(client):
    async with asyncio.timeout(60):
        while (await client.get("/health")).json()["busy"]:
            pass


async def outcomes(client):
    text = (await client.get("/metrics")).text
    prefix = 'draftline_requests_total{kind="complete",outcome="'
    counts = (line.removeprefix(prefix).split('"} ') for line in text.splitlines() if line.startswith(prefix))
    return {outcome: float(count) for outcome, count in counts}


@pytest.mark.parametrize("address", REQUESTS)
async def test_the_job_of_a_client_that_vanishes_during_a_stream_is_cancelled(start_host, runtime, address):
    engine = PacedEngine(gated=True)
    client = await start_host(engine)
    vanishing = ask(runtime, address)
    engine.permits.release(2)
    assert await asyncio.to_thread(engine.began.acquire, timeout=60)
    vanishing.close()
    await until_idle(client)
    engine.permits.release(LONG)
    assert await asyncio.to_thread(engine.ended.acquire, timeout=60)
    async with asyncio.timeout(60):
        while not (counts := await outcomes(client)):
            pass
    assert counts == {"cancelled": 1.0}
    assert engine.steps <= 3


@pytest.mark.parametrize("address", REQUESTS)
async def test_the_request_of_a_client_that_vanishes_in_the_queue_never_runs(start_host, runtime, address):
    engine = PacedEngine(gated=True)
    client = await start_host(engine)
    first = ask(runtime, "/v1/complete")
    await acquire(engine.paused)
    second = ask(runtime, address)
    await until_waiting(client, 1)
    second.close()
    first.close()
    await until_idle(client)
    engine.permits.release(2 * LONG)
    async with asyncio.timeout(60):
        while (await outcomes(client)).get("cancelled") != 2.0:
            pass
    assert len(engine.started) == 1


async def test_the_request_of_a_client_that_vanishes_while_the_model_loads_never_runs(runtime):
    engine, may_load = PacedEngine(), threading.Event()

    def load(progress):
        assert may_load.wait(60)
        return engine.load(progress)

    async with running_host(runtime, load, HostSettings()) as client:
        vanishing = ask(runtime, "/v1/complete?wait=1")
        assert (await client.get("/health")).json()["state"] == "loading"
        vanishing.close()
        # The host reads the next request after the client's disconnection, and would run it after the client's job.
        waiting = asyncio.create_task(client.post("/v1/complete?wait=1", json={"prefix": "two", "document": "two"}))
        assert (await client.get("/health")).json()["state"] == "loading"
        may_load.set()
        assert (await waiting).status_code == 200
    assert engine.started == ["two"]


async def test_a_hundred_clients_that_vanish_at_different_moments_leave_no_job(start_host, runtime):
    engine = PacedEngine(step_s=0.0005)
    client = await start_host(engine, HostSettings(queue_limit=200))
    addresses = list(REQUESTS)
    for number in range(100):
        vanishing = ask(runtime, addresses[number % len(addresses)])
        for _ in range(number % 5):
            await asyncio.sleep(0)  # one turn of the event loop each, so that clients vanish at different moments
        vanishing.close()
    last = await client.post("/v1/complete", json={"prefix": "last", "max_tokens": 1})
    assert '"done":true' in last.text
    await until_idle(client)
    assert "draftline_queue_length 0.0" in (await client.get("/metrics")).text
