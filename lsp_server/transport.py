"""Carries the protocol over standard input and output, or over TCP, and ends with the client."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO

from pygls.io_ import StdoutWriter, run_async

from lsp_server.process_end import wait_for_end
from lsp_server.server import DraftlineServer, create_server

_log = logging.getLogger(__name__)
_pygls_log = logging.getLogger("pygls.loop")  # what the loop logs may quote a message: see server_log

_CHUNK_BYTES = 1 << 16


class MessageReader:
    """Reads what pygls' loop asks for; bytes that are not UTF-8 become lone surrogates instead of a lost message."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self._stream = stream

    async def readline(self) -> bytes:
        """One header line; handlers that the last message started get their first step before it."""
        await asyncio.sleep(0)
        return await self._stream.readline()

    async def readexactly(self, size: int) -> bytes:
        """One message body, empty if the client left in the middle of it."""
        try:
            body = await self._stream.readexactly(size)
        except asyncio.IncompleteReadError:
            return b""
        return body.decode("utf-8", "surrogateescape").encode("utf-8", "surrogatepass")


async def serve_stdio(protocol_in: int, protocol_out: BinaryIO) -> None:
    """Serve one client until the input ends, `exit` comes, or the client's process is gone.

    Args:
        protocol_in: File descriptor of the input.
        protocol_out: Where messages go; nothing else may write there.
    """
    stream = asyncio.StreamReader()
    pump = threading.Thread(target=_pump, args=(protocol_in, stream, asyncio.get_running_loop()), daemon=True)
    pump.start()
    server = create_server()
    server.protocol.set_writer(StdoutWriter(protocol_out))
    watch = asyncio.create_task(_watch_client(server, stream.feed_eof))
    try:
        await _serve(server, stream)
    finally:
        watch.cancel()


async def serve_tcp(port: int) -> None:
    """Serve clients on the loopback address until the process is stopped; each has a server of its own."""

    async def on_client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = create_server()
        server.protocol.set_writer(writer)
        with contextlib.suppress(SystemExit, ConnectionError):  # `exit` ends this client's connection only
            await _serve(server, reader)
        writer.close()

    listener = await asyncio.start_server(on_client, "127.0.0.1", port)
    port = listener.sockets[0].getsockname()[1]
    print(f"draftline listens on 127.0.0.1:{port}", file=sys.stderr, flush=True)  # noqa: T201 - asked for by --tcp
    async with listener:
        await listener.serve_forever()


async def _serve(server: DraftlineServer, stream: asyncio.StreamReader) -> None:
    try:
        await run_async(
            threading.Event(), MessageReader(stream), server.protocol, _pygls_log, server.report_server_error
        )
    finally:
        await server.close()


def _pump(descriptor: int, stream: asyncio.StreamReader, loop: asyncio.AbstractEventLoop) -> None:
    """Feed the stream from a descriptor; a daemon thread, since a blocked read must not keep the process alive."""
    with contextlib.suppress(RuntimeError):  # the loop has ended first
        while data := _read(descriptor):
            loop.call_soon_threadsafe(stream.feed_data, data)
        loop.call_soon_threadsafe(stream.feed_eof)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _CHUNK_BYTES)
    except OSError:
        return b""


async def _watch_client(server: DraftlineServer, on_gone: Callable[[], None]) -> None:
    """Serve no longer than the process lives that the client named."""
    await server.introduced.wait()
    if server.process_id is not None:
        await wait_for_end(server.process_id)
        _log.info("The client's process is gone.")
        on_gone()
