"""Requests that reach the engine in another order than they were sent."""

import asyncio
from contextlib import aclosing
from dataclasses import replace

from completion.host.process.address import endpoint_at, host_address
from completion.request import SUPERSEDED, CompletionRequest
from lsp_server.engine.client import EngineClient
from lsp_server.engine.launcher import EngineOptions
from tests.completion.host.conftest import http_client


async def suggested(client, request):
    async with aclosing(client.complete(request)) as events:
        return [event.suggestions[0].text async for event in events if event.suggestions]


async def test_cancelled_requests_that_arrive_late_do_not_end_their_successor(paced):
    client = EngineClient(EngineOptions(model="paced", is_editor=True))
    await client.connect()
    request = CompletionRequest("x = ", document="a", max_tokens=3)
    async with http_client(endpoint_at(host_address("paced", "auto").endpoint_path)) as host:

        async def waiting_jobs(count):
            while f"draftline_queue_length {count}.0" not in (await host.get("/metrics")).text:
                pass

        busy = asyncio.create_task(suggested(client, CompletionRequest("y = ", document="b", max_tokens=1)))
        assert await asyncio.to_thread(paced.began.acquire, timeout=60)
        successor = asyncio.create_task(suggested(client, request))
        await waiting_jobs(1)
        connection = client.live()  # the client itself cannot be made to send what it cancelled late
        late = [asyncio.create_task(anext(connection.complete(replace(request, order=order)))) for order in (0, 1)]
        await waiting_jobs(3)
        paced.permits.release(20)
        assert await asyncio.wait_for(busy, 60) == [" 0", " 0"]
        assert (await asyncio.wait_for(successor, 60))[-1] == " 0 1 2"
        assert [(await asyncio.wait_for(one, 60)).dropped for one in late] == [SUPERSEDED] * 2
    await client.close()
