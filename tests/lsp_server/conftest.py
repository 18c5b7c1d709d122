"""Fixtures: a clock that tests advance, a paced engine behind a real host socket, and real server processes."""

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from completion.host.process.address import host_address
from completion.host.process.sockets import own_socket
from completion.host.server import HostServer, HostSettings
from tests.completion.host.paced_engine import PacedEngine
from tests.event_loop import pass_time
from tests.lsp_server.real_client import RealClient

__all__ = ["pass_time"]


@asynccontextmanager
async def host_with(engine):
    """Run a host with an engine within the block, where a server looks for the model "paced"."""
    own = own_socket(host_address("paced", "auto").endpoint_path)
    server = HostServer(HostSettings(model="paced"), engine.load, own.token)
    task = asyncio.create_task(server.run([own.listener]))
    yield
    engine.gated = False
    engine.permits.release(1000)
    server.stop()
    await task


@pytest.fixture
async def paced(runtime):
    """Start a host where a server looks for the model "paced", and yield its engine. Each step needs a permit."""
    engine = PacedEngine(gated=True)
    async with host_with(engine):
        yield engine


@pytest.fixture
async def start_client(runtime):
    """Yield a function that starts a server with its client, a given or a new one; all are shut down after the test."""
    async with AsyncExitStack() as stack:

        async def start(client=None, **options):
            client = client or RealClient()
            stack.push_async_callback(client.stop)
            # What the server does after a pause by itself would happen in tests that are slow.
            by_itself = {"prepare_ms": 0, "ahead": False}
            defaults = {"model": "paced", "max_tokens": 3, "idle_minutes": 0.01, "suggestions": 1, **by_itself}
            return await client.start(**{**defaults, **options})

        yield start
