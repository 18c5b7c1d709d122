"""Streams that are cancelled at any moment, against a host that sends an event each millisecond: what is left of them.

Eight documents request at once, as a window with many editors. Nine requests of ten are cancelled within the time of
their stream, most of them more than once, as a key, a moved cursor and a closed document do in one turn of the loop.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import httpcore

from benchmarks.engine_processes import private_folders
from completion.request import CompletionRequest
from lsp_server.engine.client import EngineClient
from lsp_server.engine.launcher import EngineOptions
from lsp_server.suggesting.generation import Generation
from lsp_server.suggesting.narrowing import Situation

_DOCUMENTS = 8
_MOST_EVENTS = 8
_CANCELLED = 0.9
_EVENT_S = 0.001
_ANSWER_S = 30.0
_TELLS = 10
_HOST = (sys.executable, str(Path(__file__).with_name("paced_host.py")))


@dataclass(slots=True)
class Left:
    """What was counted.

    Attributes:
        unanswered: Requests that nobody cancelled and that got no whole text, and cancelled ones that did not end.
        connections_left: Connections that serve no request any more and that no further one can use.
        longest_wait_s: From a request to its last event.
    """

    requests: int = 0
    cancelled: int = 0
    unanswered: int = 0
    connections_left: int = 0
    longest_wait_s: float = 0.0


def cancel_streams(count: int, seed: int, tell: Callable[[str], None]) -> dict[str, float]:
    """Send so many requests; return what was counted."""
    with private_folders() as environment:
        os.environ.update(environment)
        return asdict(asyncio.run(_cancel_streams(count, random.Random(seed), tell)))


async def _cancel_streams(count: int, chance: random.Random, tell: Callable[[str], None]) -> Left:
    client, left = EngineClient(EngineOptions(model="paced", idle_s=1.0, is_editor=True, program=_HOST)), Left()
    await client.connect()

    async def one_document(name: str) -> None:
        while left.requests < count:
            left.requests += 1
            if left.requests % max(1, count // _TELLS) == 0:
                tell(f"{left.requests:,} requests, {left.unanswered} unanswered, {_active(client)} connections active")
            await _one_stream(client, name, chance, left)

    await asyncio.gather(*(one_document(str(number)) for number in range(_DOCUMENTS)))
    left.connections_left = await _connections_left(client)
    await client.close()
    return left


async def _one_stream(client: EngineClient, document: str, chance: random.Random, left: Left) -> None:
    generation, reached = Generation(document, Situation("", "")), asyncio.Event()
    started_s = time.monotonic()
    events = chance.randint(1, _MOST_EVENTS)
    awaited = chance.randint(0, events)

    def note(generation: Generation) -> None:
        text = generation.last.suggestions[0].text if generation.last is not None else ""
        if len(text) >= awaited:
            reached.set()

    generation.run(client, CompletionRequest("", document=document, max_tokens=events), note)
    if chance.random() < _CANCELLED:
        left.cancelled += 1
        with suppress(TimeoutError):  # some are cancelled before their first event
            async with asyncio.timeout(_ANSWER_S if awaited else chance.uniform(0, _MOST_EVENTS * _EVENT_S)):
                await reached.wait()
        for _ in range(chance.randint(1, 3)):
            for _ in range(chance.randint(0, 3)):
                await asyncio.sleep(0)
            generation.cancel()
    try:
        async with asyncio.timeout(_ANSWER_S):
            await generation.ended.wait()
    except TimeoutError:
        generation.cancel()
        left.unanswered += 1
    if not generation.cancelled:
        left.unanswered += generation.error is not None
        left.longest_wait_s = max(left.longest_wait_s, time.monotonic() - started_s)


def _active(client: EngineClient) -> int:
    """Connections in use, the lease's among them."""
    pool: httpcore.AsyncConnectionPool = client.live()._pool  # noqa: SLF001 - nobody else needs to count them
    return sum(not (one.is_idle() or one.is_closed()) for one in pool.connections)


async def _connections_left(client: EngineClient) -> int:
    """Wait until the streams have closed; return how many connections are still active besides the lease's."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_ANSWER_S):
            while _active(client) > 1:  # noqa: ASYNC110 - the pool has no event
                await asyncio.sleep(_EVENT_S)
    return _active(client) - 1
