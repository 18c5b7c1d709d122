"""A host on a private socket inside the event loop of the test."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest

from completion.host.engine_protocol import EngineLoader
from completion.host.process.sockets import tcp_socket, unix_socket
from completion.host.server import HostServer, HostSettings
from tests.completion.host.paced_engine import PacedEngine


@asynccontextmanager
async def running_host(folder: Path, load: EngineLoader, settings: HostSettings) -> AsyncIterator[httpx.AsyncClient]:
    path = folder / "test.sock"
    sockets = [unix_socket(path)]
    if settings.tcp:
        sockets.append(tcp_socket(settings.tcp))
    server = HostServer(settings, load)
    task = asyncio.create_task(server.run(sockets))
    transport = httpx.AsyncHTTPTransport(uds=str(path))
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://draftline", timeout=20) as client:
            yield client
    finally:
        server.stop()
        await task


StartHost = Callable[..., Awaitable[httpx.AsyncClient]]


@pytest.fixture
async def start_host(runtime: Path) -> AsyncIterator[StartHost]:
    """Start a host with an engine and settings; it is ready when this returns."""
    engines: list[PacedEngine] = []
    async with AsyncExitStack() as stack:

        async def start(engine: PacedEngine, settings: HostSettings | None = None) -> httpx.AsyncClient:
            engines.append(engine)
            client = await stack.enter_async_context(running_host(runtime, engine.load, settings or HostSettings()))
            async with client.stream("GET", "/v1/lease") as lease:
                async for line in lease.aiter_lines():
                    if '"ready"' in line:
                        return client
            raise AssertionError("the lease ended")

        try:
            yield start
        finally:
            for engine in engines:
                engine.gated = False
                engine.permits.release(1000)
