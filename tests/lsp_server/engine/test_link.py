"""The session's connection to the engine, with a real host."""

import asyncio
from dataclasses import replace

import pytest

from completion.errors import EngineUnavailableError
from completion.request import CompletionRequest
from lsp_server.engine.client import EngineClient
from lsp_server.engine.launcher import EngineOptions
from lsp_server.engine.link import EngineLink
from lsp_server.settings.table import DEFAULTS
from lsp_server.status import LoadingProgress, StatusReporter
from tests.completion.host.paced_engine import PacedEngine
from tests.event_loop import settle
from tests.lsp_server.conftest import host_with
from tests.lsp_server.real_client import steps


async def test_the_workspace_is_sent_again_after_a_lost_connection_to_a_host_that_lives(paced):
    """The host forgot it with the lease."""
    sentences, ready = [], asyncio.Semaphore(0)
    status = StatusReporter(lambda _method, params: sentences.append(params["message"]))
    link = EngineLink(status, lambda: LoadingProgress(None), ready.release)
    await link.use(replace(DEFAULTS, model="paced"))
    await asyncio.wait_for(ready.acquire(), 60)
    serve = paced.complete

    def refuse(_request, _cancel):
        paced.complete = serve
        raise EngineUnavailableError("128 connections are open.")

    paced.complete = refuse
    steps(paced, 1)
    events = [event async for event in link.source.complete(CompletionRequest("x = ", document="a", max_tokens=1))]
    assert events[-1].suggestions[0].text == " 0"
    await asyncio.wait_for(ready.acquire(), 60)
    assert sentences[-2:] == ["The connection to the engine was lost. The next request connects again.", "Ready."]
    await link.close()


async def test_closing_ends_a_connect_that_waits_for_the_model_to_load(runtime):
    engine, loading = PacedEngine(), asyncio.Event()
    engine.may_load.clear()
    client = EngineClient(EngineOptions(model="paced"), lambda status: status.state == "loading" and loading.set())
    async with host_with(engine):
        connecting = asyncio.create_task(client.connect())
        await asyncio.wait_for(loading.wait(), 60)
        await settle()
        await client.close()
        with pytest.raises(EngineUnavailableError, match="was closed"):
            await asyncio.wait_for(connecting, 60)
        engine.may_load.set()
