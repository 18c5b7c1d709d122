"""A stream that is cancelled, at whatever moment and however often, frees its connection."""

import asyncio
from contextlib import aclosing, suppress

import pytest

from completion.errors import DraftlineError
from completion.host.process.address import endpoint_at
from completion.host.process.sockets import own_socket
from completion.host.wire import encode
from completion.request import CompletionEvent, CompletionRequest, Statistics, StopReason, Suggestion
from lsp_server.engine.http import EngineConnection
from lsp_server.suggesting.generation import Generation
from lsp_server.suggesting.narrowing import Situation

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
GROWING = CompletionEvent((Suggestion("a"),))
DONE = CompletionEvent((Suggestion("a"),), done=True, stop_reason=StopReason.LINE_END, statistics=Statistics(), whole=1)


def chunk(event):
    data = b"data: %b\n\n" % encode(event)
    return b"%x\r\n%b\r\n" % (len(data), data)


@pytest.fixture
async def connection(runtime):
    """A connection to an engine that sends events until the client goes, or one that is the last."""

    async def serve(reader, writer):
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while request := await reader.readuntil(b"\r\n\r\n"):
                sent = await reader.readexactly(int(request.lower().partition(b"content-length: ")[2].split()[0]))
                writer.write(HEAD + chunk(GROWING))
                while b'"ends"' not in sent:
                    writer.write(chunk(GROWING))
                    await writer.drain()
                    await asyncio.sleep(0)
                writer.write(chunk(DONE) + b"0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, sock=own_socket(runtime / "s").listener):
        connection = EngineConnection(endpoint_at(runtime / "s"))
        yield connection
        await connection.close()


async def turns(count):
    for _ in range(count):
        await asyncio.sleep(0)


def active(connection):
    """The connections that no further request can use."""
    return [one for one in connection._pool.connections if not (one.is_idle() or one.is_closed())]


async def all_are_freed(connection):
    while connection._unfinished:
        await asyncio.wait(connection._unfinished)
    await turns(10)
    return not active(connection) and not connection._pool._requests


@pytest.mark.parametrize("first", [0, 5, 15, 30])
@pytest.mark.parametrize("between", range(4))
async def test_a_reader_that_is_cancelled_twice_frees_its_connection(connection, first, between):
    async def read():
        async with aclosing(connection.complete(CompletionRequest("x"))) as events:
            async for _ in events:
                pass

    reading = asyncio.create_task(read())
    await turns(first)
    for _ in range(3):
        reading.cancel()
        await turns(between)
    with suppress(asyncio.CancelledError):
        await reading
    assert await all_are_freed(connection)


@pytest.mark.parametrize("between", range(4))
async def test_a_caller_of_a_message_that_is_cancelled_twice_frees_its_connection(connection, between):
    posting = asyncio.create_task(connection.post("/v1/prepare", CompletionRequest("x")))
    await turns(30)
    for _ in range(3):
        posting.cancel()
        await turns(between)
    with suppress(asyncio.CancelledError, DraftlineError):
        await posting
    assert await all_are_freed(connection)


@pytest.mark.parametrize("later", range(6))
async def test_a_generation_that_is_dropped_once_it_is_done_closes_its_own_stream(connection, later):
    generation, ended = Generation("1", Situation("ends", "")), asyncio.Event()
    generation.run(connection, CompletionRequest("ends"), lambda one: ended.set() if not one.running else None)
    await ended.wait()
    await turns(later)
    generation.cancel()
    await asyncio.wait([generation._task])
    assert not generation._task.cancelled()
    assert await all_are_freed(connection)
