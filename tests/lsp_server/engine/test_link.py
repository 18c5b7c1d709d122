"""The session's connection to the engine, with a real host."""

import asyncio
from dataclasses import replace

from completion.errors import EngineUnavailableError
from completion.request import CompletionRequest
from lsp_server.engine.link import EngineLink
from lsp_server.settings.table import DEFAULTS
from lsp_server.status import LoadingProgress, StatusReporter
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
