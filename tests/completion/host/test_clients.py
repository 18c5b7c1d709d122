"""Clients that share a host: what they no longer use is forgotten, and they do not disturb each other."""

import asyncio
import subprocess
import sys
from typing import Self

import httpx
from httpx_sse import aconnect_sse

from completion.engine import Engine
from completion.host.engine_loader import warm_up
from completion.host.engine_protocol import LoadedEngine
from completion.host.process.clients import CLIENT_HEADER, document_of
from completion.host.server import HostSettings
from completion.host.wire import decode_event
from completion.request import Closing, CompletionEvent
from tests.completion.host.conftest import running_host
from tests.completion.host.paced_engine import PacedEngine
from tests.completion.host.test_requests import acquire, body, read_events, until_waiting

_LEASE = """
import sys, httpx
from pathlib import Path
from completion.host.process.address import endpoint_at
endpoint = endpoint_at(Path(sys.argv[1]))
transport = httpx.HTTPTransport(uds=str(endpoint.socket_path) if endpoint.socket_path else None)
headers = {sys.argv[2]: "gone"} | ({"Authorization": f"Bearer {endpoint.token}"} if endpoint.token else {})
client = httpx.Client(transport=transport, base_url=endpoint.url, headers=headers)
with client.stream("GET", "/v1/lease") as lease:
    for line in lease.iter_lines():
        client.post("/v1/workspace", json={"workspace": "folder"})
        print("sent", flush=True)
"""


class Client:
    """A client with a name, which holds a lease while its context is entered."""

    def __init__(self, http: httpx.AsyncClient, name: str) -> None:
        self.http = http
        self.headers = {CLIENT_HEADER: name}

    async def __aenter__(self) -> Self:
        self._stream = self.http.stream("GET", "/v1/lease", headers=self.headers)
        self._lines = (await self._stream.__aenter__()).aiter_lines()  # keeps the reader, whose end would end the lease
        await anext(self._lines)
        return self

    async def __aexit__(self, *details: object) -> None:
        await self._stream.__aexit__(*details)

    async def post(self, path: str, message: dict[str, object]) -> None:
        reply = await self.http.post(path, json=message, headers=self.headers)
        assert reply.status_code == 202, reply.text

    async def complete(self, **fields: object) -> CompletionEvent:
        """Return the last event."""
        path = "/v1/complete?wait=1"
        async with aconnect_sse(self.http, "POST", path, json=body(**fields), headers=self.headers) as source:
            return [decode_event(sent.json()) async for sent in source.aiter_sse()][-1]


def forgotten(engine: PacedEngine) -> list[Closing]:
    """Return what the engine forgot, with the documents' keys as the clients gave them."""
    return [Closing(tuple(map(document_of, one.documents)), one.workspaces) for one in engine.forgotten]


async def test_a_closed_document_is_forgotten(start_host):
    engine = PacedEngine()
    async with Client(await start_host(engine), "a") as client:
        await client.post("/v1/prepare", body(document="d", workspace="w"))
        await client.post("/v1/close", {"documents": ["d"]})
        await acquire(engine.forgot)
    assert forgotten(engine)[0] == Closing(documents=("d",))


async def test_a_workspace_is_forgotten_once_the_last_client_has_closed_it(start_host):
    engine = PacedEngine()
    http = await start_host(engine)
    async with Client(http, "a") as first:
        async with Client(http, "b") as second:
            for client in (first, second):
                await client.post("/v1/workspace", {"workspace": "shared"})
                await client.post("/v1/prepare", body(document=f"of {client.headers[CLIENT_HEADER]}"))
            await second.post("/v1/close", {"workspaces": ["shared"], "documents": ["of b"]})
            await acquire(engine.forgot)
        await first.post("/v1/close", {"workspaces": ["shared"]})
        await acquire(engine.forgot)
    await acquire(engine.forgot)
    assert forgotten(engine) == [
        Closing(documents=("of b",)),
        Closing(workspaces=("shared",)),
        Closing(documents=("of a",)),
    ]


async def test_the_workspace_of_a_killed_client_is_forgotten(start_host, runtime):
    engine = PacedEngine()
    await start_host(engine)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _LEASE, str(runtime / "test.sock"), CLIENT_HEADER, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    await process.stdout.readline()
    await acquire(engine.ended)
    process.kill()
    await acquire(engine.forgot)
    await process.wait()
    assert engine.forgotten == [Closing(workspaces=("folder",))]


async def test_two_windows_with_the_same_document_do_not_end_each_others_requests(start_host):
    engine = PacedEngine(gated=True)
    http = await start_host(engine)
    async with Client(http, "a") as first, Client(http, "b") as second:
        older = asyncio.create_task(first.complete(document="d"))
        await acquire(engine.began)
        newer = asyncio.create_task(second.complete(document="d"))
        await until_waiting(http, 1)
        engine.permits.release(6)
        for request in (older, newer):
            assert (await request).suggestions[0].text == " 0 1 2"


async def test_two_windows_with_different_texts_of_one_document_keep_their_own_caches(runtime, tiny_model):
    """Neither the other window's requests nor its closing of the document cost this window computed tokens."""
    engine = Engine(tiny_model)
    warm_up(engine)

    def load(_progress):
        return LoadedEngine(engine, "tiny", "cpu")

    async with (
        running_host(runtime, load, HostSettings()) as http,
        Client(http, "a") as first,
        Client(http, "b") as second,
    ):
        windows = {first: "def first(one):\n    return ", second: "class Other:\n    names = ["}
        for _ in range(2):
            again = [await window.complete(prefix=text, document="d") for window, text in windows.items()]
        await second.post("/v1/close", {"documents": ["d"]})
        again.append(await first.complete(prefix=windows[first], document="d"))
    assert [event.statistics.kept_tokens > 0 for event in again] == [True] * 3
    assert [event.statistics.computed_tokens for event in again] == [0] * 3


async def test_a_full_queue_accepts_a_closing(start_host):
    engine = PacedEngine(gated=True)
    http = await start_host(engine, HostSettings(queue_limit=1))
    running = asyncio.create_task(read_events(http, body(document="running")))
    await acquire(engine.began)
    full, sent = 0, 0
    while full != 429:
        sent += 1
        full = (await http.post("/v1/workspace", json={"workspace": "w", "removed": [f"{sent}.py"]})).status_code
    assert (await http.post("/v1/close", json={"workspaces": ["w"]})).status_code == 202
    engine.permits.release(1000)
    await running
    await acquire(engine.forgot)


async def test_an_unknown_field_of_a_closing_is_refused_by_name(start_host):
    http = await start_host(PacedEngine())
    reply = await http.post("/v1/close", json={"document": "d"})
    assert reply.status_code == 422
    assert "document" in reply.json()["message"]
