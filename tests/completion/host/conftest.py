"""A host on a private socket inside the event loop of the test, and its clients over either transport."""

import asyncio
import math
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest

from completion.host import job, job_queue
from completion.host.engine_protocol import EngineLoader
from completion.host.process.address import Endpoint, endpoint_at
from completion.host.process.sockets import own_socket, tcp_socket
from completion.host.server import HostServer, HostSettings
from tests.completion.host.paced_engine import PacedEngine
from tests.event_loop import pass_time

__all__ = ["pass_time"]


def authorization(endpoint: Endpoint) -> dict[str, str]:
    return {"Authorization": f"Bearer {endpoint.token}"} if endpoint.token else {}


def http_client(endpoint: Endpoint) -> httpx.AsyncClient:
    transport = httpx.AsyncHTTPTransport(uds=str(endpoint.socket_path) if endpoint.socket_path else None)
    headers = authorization(endpoint)
    return httpx.AsyncClient(transport=transport, base_url=endpoint.url, headers=headers, timeout=60)


def raw_connection(endpoint: Endpoint) -> socket.socket:
    if endpoint.socket_path is None:
        url = httpx.URL(endpoint.url)
        return socket.create_connection((url.host, url.port))
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(endpoint.socket_path))
    return connection


@asynccontextmanager
async def running_host(folder: Path, load: EngineLoader, settings: HostSettings) -> AsyncIterator[httpx.AsyncClient]:
    own = own_socket(folder / "test.sock")
    sockets = [own.listener]
    if settings.tcp:
        sockets.append(tcp_socket(settings.tcp))
    server = HostServer(settings, load, own.token)
    task = asyncio.create_task(server.run(sockets))
    try:
        async with http_client(endpoint_at(folder / "test.sock")) as client:
            yield client
    finally:
        server.stop()
        await task


async def until_ready(client: httpx.AsyncClient) -> None:
    """Wait until the host has loaded its engine."""
    async with client.stream("GET", "/v1/lease") as lease:
        async for line in lease.aiter_lines():
            if '"ready"' in line:
                return
    raise AssertionError("the lease ended")


StartHost = Callable[..., Awaitable[httpx.AsyncClient]]


@pytest.fixture
async def start_host(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StartHost]:
    """Start a host with an engine and settings; it is ready when this returns.

    However long a test takes, its answers are young and short, and its updates are not overdue, unless it says so.
    """
    for module, limit in ((job, "WHOLE_S"), (job_queue, "LONG_S"), (job_queue, "OVERDUE_S")):
        monkeypatch.setattr(module, limit, math.inf)
    engines: list[PacedEngine] = []
    async with AsyncExitStack() as stack:

        async def start(engine: PacedEngine, settings: HostSettings | None = None) -> httpx.AsyncClient:
            engines.append(engine)
            client = await stack.enter_async_context(running_host(runtime, engine.load, settings or HostSettings()))
            await until_ready(client)
            return client

        try:
            yield start
        finally:
            for engine in engines:
                engine.gated = False
                engine.permits.release(1000)
