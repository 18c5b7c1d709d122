"""Serves the protocol over standard input and output or over TCP, until the client leaves."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import BinaryIO

from pygls.io_ import StdoutWriter

from completion.errors import ConfigurationError
from lsp_server.server import DraftlineServer, create_server
from lsp_server.server_log import ignore_late_wakeups
from lsp_server.wire.protocol import UnknownClientError

_log = logging.getLogger(__name__)

_CHUNK_BYTES = 1 << 16
_CONTENT_LENGTH = re.compile(rb"Content-Length: *(\d{1,12})\r?\n", re.IGNORECASE)

_MAX_BODY_BYTES = 1 << 30
_MAX_FIRST_BODY_BYTES = 1 << 20
"""Maximum size of the messages of a client that has not sent its token yet."""

_INTRODUCTION_S = 10.0
"""Time in which a client on TCP must send its token, in seconds."""


class MessageReader:
    """Reads messages: header lines, an empty line, and a body of Content-Length bytes."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self._stream = stream

    async def next_body(self, limit_bytes: int) -> bytes:
        """Return the body of the next message, b"" at the end of the stream.

        A Content-Length above the limit is ignored, and so is every line up to the next valid header.
        """
        size = 0
        while line := await self._header_line():
            announced = _CONTENT_LENGTH.fullmatch(line)
            if announced and size == 0 and int(announced[1]) <= limit_bytes:
                size = int(announced[1])
            elif size and not line.strip():
                return await self._body(size)
        return b""

    async def _header_line(self) -> bytes:
        """Return the next line, b"" at the end. A line longer than the stream's buffer becomes a placeholder."""
        await asyncio.sleep(0)  # lets the handlers of the last message take their first step before the next message
        is_long = False
        while True:
            try:
                line = await self._stream.readuntil(b"\n")
            except asyncio.LimitOverrunError as error:
                await self._stream.readexactly(error.consumed)
                is_long = True
            except asyncio.IncompleteReadError:
                return b""
            else:
                return b"the end of a long line\n" if is_long else line

    async def _body(self, size: int) -> bytes:
        """Return a message's bytes, b"" if the stream ends before its last byte."""
        try:
            return await self._stream.readexactly(size)
        except asyncio.IncompleteReadError:
            return b""


async def serve_stdio(protocol_in: int, protocol_out: BinaryIO) -> None:
    """Serve one client until the input ends, `exit` arrives, or the client's process ends."""
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


async def serve_tcp(port: int, token: str) -> None:
    """Serve clients on the loopback address until the process is stopped. Each client has its own server.

    Every process of this machine can connect, and any web page can send an HTTP request here. So a client must send the
    token in its first message, or it is disconnected.

    Raises:
        ConfigurationError: The port is not free.
    """

    async def on_client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = create_server(token)
        server.protocol.set_writer(writer)
        timer = asyncio.get_running_loop().call_later(_INTRODUCTION_S, _close_unknown_client, server, writer)
        with contextlib.suppress(SystemExit, ConnectionError):  # `exit` ends this client's connection only
            await _serve(server, reader)
        timer.cancel()
        writer.close()

    try:
        listener = await asyncio.start_server(on_client, "127.0.0.1", port)
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise ConfigurationError(
            f"Cannot listen on 127.0.0.1:{port} ({reason}). Choose another port with --tcp PORT."
        ) from error
    port = listener.sockets[0].getsockname()[1]
    print(f"draftline listens on 127.0.0.1:{port}", file=sys.stderr, flush=True)  # noqa: T201 - clients need the port
    async with listener:
        await listener.serve_forever()


def _close_unknown_client(server: DraftlineServer, writer: asyncio.StreamWriter) -> None:
    if not server.protocol.is_introduced:
        writer.close()


async def _serve(server: DraftlineServer, stream: asyncio.StreamReader) -> None:
    reader, protocol = MessageReader(stream), server.protocol
    ignore_late_wakeups(asyncio.get_running_loop())
    try:
        while body := await reader.next_body(
            _MAX_BODY_BYTES if protocol.is_introduced or not protocol.token else _MAX_FIRST_BODY_BYTES
        ):
            protocol.receive(body)
    except UnknownClientError as error:
        _log.warning("A client was disconnected: %s", error)
    finally:
        await server.close()


def _pump(descriptor: int, stream: asyncio.StreamReader, loop: asyncio.AbstractEventLoop) -> None:
    """Feed the stream from a descriptor. Runs on a daemon thread, so that a blocked read does not keep the process."""
    with contextlib.suppress(RuntimeError):  # the loop ended first
        with contextlib.suppress(OSError):
            while data := os.read(descriptor, _CHUNK_BYTES):
                loop.call_soon_threadsafe(stream.feed_data, data)
        loop.call_soon_threadsafe(stream.feed_eof)


async def _watch_client(server: DraftlineServer, on_gone: Callable[[], None]) -> None:
    """Call `on_gone` when the process whose id the client gave in `initialize` has ended."""
    parent_id = os.getppid()  # the client may end at once
    await server.introduced.wait()
    watched = server.process_id, parent_id, partial(asyncio.get_running_loop().call_soon_threadsafe, on_gone)
    threading.Thread(target=_wait_for_end, args=watched, daemon=True).start()


def _wait_for_end(client_id: int | None, parent_id: int, on_gone: Callable[[], object]) -> None:
    """Call `on_gone` once the client has ended, if its process has started this one, itself or through others.

    A client in another container, or outside of WSL, gives a number that here means no process or anybody's.
    """
    import psutil  # noqa: PLC0415 - importing it takes 20 ms

    try:
        if client_id != parent_id and client_id not in {each.pid for each in psutil.Process().parents()}:
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(client_id).wait()
    except psutil.Error:  # one of them ends, or the system does not tell
        return
    _log.info("The client's process has ended.")
    with contextlib.suppress(RuntimeError):  # the loop ended first
        on_gone()
