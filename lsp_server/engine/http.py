"""The HTTP connection to an engine host. Only a client that connects imports it: importing httpcore takes 30 ms."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

import httpcore

from completion import errors
from completion.edits import NextEditRequest, NextEdits
from completion.errors import ConfigurationError, DraftlineError, EngineUnavailableError
from completion.host.process.address import Endpoint, endpoint_at, keep_alive_options
from completion.host.process.clients import CLIENT_HEADER
from completion.host.wire import decode_event, decode_next_edits, encode
from completion.remote.connection import trusting
from completion.request import Closing, CompletionEvent, CompletionRequest, WorkspaceUpdate
from lsp_server.engine.launcher import EngineOptions, EngineStatus, HostGoneError, HostSilentError, status_of

_CONNECT_S = 5.0
_READ_S = 120.0
"""Maximum seconds between two parts of a reply. A slow machine may need minutes for a prompt of thousands of tokens."""
_CLOSE_S = 1.0
"""Maximum seconds to close unfinished requests: a hung host must not keep the editor from closing."""
_CONNECTIONS, _KEPT, _KEPT_S = 100, 20, 5.0
"""Maximum number of connections to a host, how many of them stay open without a request, and for how many seconds."""
_FIRST_ERROR = 400
"""Lowest HTTP status that says that a request failed."""
_OF_ONE_REQUEST = frozenset({"invalid_request", "too_large", "queue_full", "internal"})
"""Codes of errors that concern one request: the host is well, and its other requests go on."""
_T = TypeVar("_T")


class EngineConnection:
    """A connection to one host over its Unix socket, or over TCP with a token.

    Its methods raise HostGoneError if no host listens or it ends during the reply, HostSilentError if it does not
    answer in time, and another DraftlineError if it refuses the connection or the message.
    """

    def __init__(self, endpoint: Endpoint, client: str = "") -> None:
        self._url = endpoint.url
        self._headers: dict[bytes | str, bytes | str] = {"Host": urlsplit(endpoint.url).netloc}
        self._headers |= {"Authorization": f"Bearer {endpoint.token}"} if endpoint.token else {}
        self._headers |= {CLIENT_HEADER: client} if client else {}
        self._pool = httpcore.AsyncConnectionPool(
            # Loading the certificates takes 20 ms, and only https needs them.
            ssl_context=trusting(endpoint.ca_file) if endpoint.url.startswith("https:") else None,
            max_connections=_CONNECTIONS,
            max_keepalive_connections=_KEPT,
            keepalive_expiry=_KEPT_S,
            uds=str(endpoint.socket_path) if endpoint.socket_path else None,
            socket_options=None if endpoint.socket_path else keep_alive_options(),
        )
        self._unfinished: set[asyncio.Task[Any]] = set()

    async def states(self) -> AsyncGenerator[EngineStatus]:
        """Hold a lease, and yield the host's status now and after each change."""
        async with aclosing(self._events(self._request("GET", "/v1/lease", read_s=None))) as events:
            async for _, data in events:
                yield _decoded(data, status_of)
        raise HostGoneError("The engine ended.")

    async def complete(self, request: CompletionRequest) -> AsyncGenerator[CompletionEvent]:
        """Yield the events of a request. Closing the generator cancels it."""
        async with aclosing(self._events(self._request("POST", "/v1/complete", encode(request)))) as events:
            async for name, data in events:
                if name == "error":
                    raise _decoded(data, _error)
                event = _decoded(data, decode_event)
                yield event
                if event.done:
                    return
        raise HostGoneError("The engine ended during a request. Send the request again.")

    async def next_edits(self, request: NextEditRequest) -> NextEdits:
        """Return what the user's last edits imply. Cancelling this cancels the request."""
        return _decoded(await self.post("/v1/next-edit", request), decode_next_edits)

    async def post(self, path: str, message: CompletionRequest | NextEditRequest | WorkspaceUpdate | Closing) -> str:
        """Send a message; return the reply's text."""
        return await self._answer(self._request("POST", path, encode(message)))

    async def health(self, within_s: float, *, memory: bool = False) -> dict[str, Any]:
        """Return the host's health if it answers within some seconds, with `memory` where its memory is."""
        path = "/health?memory=1" if memory else "/health"
        request = self._request("GET", path, read_s=within_s, connect_s=within_s)
        # `status_of` raises KeyError unless every field of a status is there
        return _decoded(await self._answer(request), lambda found: found if status_of(found) else {})

    async def close(self) -> None:
        """Close all connections; the host notices at once and cancels their requests."""
        if self._unfinished:
            await asyncio.wait(self._unfinished, timeout=_CLOSE_S)
        await self._pool.aclose()

    def _request(
        self,
        method: str,
        path: str,
        content: bytes = b"",
        *,
        read_s: float | None = _READ_S,
        connect_s: float = _CONNECT_S,
    ) -> httpcore.Request:
        timeouts = {"connect": connect_s, "read": read_s, "write": read_s, "pool": read_s}
        headers = {**self._headers, "Content-Length": str(len(content))}
        return httpcore.Request(
            method, self._url + path, headers=headers, content=content, extensions={"timeout": timeouts}
        )

    async def _answer(self, request: httpcore.Request) -> str:
        """Send a request; return the text of the whole reply."""
        async with self._reply(request) as reply:
            return (await self._checked(reply)).decode("utf-8", "replace")

    async def _events(self, request: httpcore.Request) -> AsyncGenerator[tuple[str, str]]:
        """Send a request, and yield the events of the reply, each its name, "" for none, and its data."""
        async with self._reply(request) as reply:
            if not _is_stream(reply):
                await self._checked(reply)
                raise HostGoneError("The engine does not answer with events. Try again.")
            begun, parts = list[bytes](), aiter(reply.aiter_stream())
            while (part := await self._read(reply, anext(parts, None))) is not None:
                begun.append(part)
                if b"\n" not in part:  # a long line goes on: to join it each time would take quadratic time
                    continue
                events, rest = split_events(b"".join(begun))
                begun = [rest]
                for event in events:
                    yield event

    @asynccontextmanager
    async def _reply(self, request: httpcore.Request) -> AsyncIterator[httpcore.Response]:
        """Send a request, and provide the reply."""
        with _transport_errors():
            reply = await self._open(request)
            try:
                yield reply
            finally:
                await asyncio.shield(self._start(reply.aclose()))

    async def _open(self, request: httpcore.Request) -> httpcore.Response:
        """Send a request. If this is cancelled, the request is still sent, and closed as soon as the host replies.

        httpcore's pool never frees a connection whose request is cancelled between connecting and sending, or again
        while that closes it. After a hundred of them it would send no further request.
        """
        opening = self._start(self._pool.handle_async_request(request))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(self._close_unwanted)
            raise

    def _close_unwanted(self, opening: asyncio.Task[httpcore.Response]) -> None:
        if not opening.cancelled() and opening.exception() is None:
            self._start(opening.result().aclose())

    async def _checked(self, reply: httpcore.Response) -> bytes:
        """Return the content of a reply, unless it is an error: raise that."""
        content = await self._read(reply, reply.aread())
        if reply.status >= _FIRST_ERROR:
            raise _error(_error_message(reply.status, content))
        return content

    async def _read(self, reply: httpcore.Response, work: Awaitable[_T]) -> _T:
        """Read a reply in a task that owns its stream. If the caller is cancelled, it is cut off and closes itself."""
        reading = self._start(work)
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            if not reading.done():
                with suppress(OSError):  # the host has closed it
                    reply.extensions["network_stream"].get_extra_info("socket").shutdown(socket.SHUT_RDWR)
            raise

    def _start(self, work: Awaitable[_T]) -> asyncio.Task[_T]:
        """Start work as a task that finishes even if its caller is cancelled."""
        task = asyncio.ensure_future(work)
        self._unfinished.add(task)
        task.add_done_callback(self._note_end)
        return task

    def _note_end(self, task: asyncio.Task[Any]) -> None:
        self._unfinished.discard(task)
        if not task.cancelled():
            task.exception()  # nobody may wait for it any more


def connection_to(path: Path | None, options: EngineOptions) -> EngineConnection:
    """Return a connection to the host that listens at a path, or to the one on another machine.

    Raises:
        HostGoneError: No host listens.
        PermissionsError: Another user owns the host's socket or file, or can access it.
        ConfigurationError: The address, the token or the certificates of the other machine cannot be used.
    """
    if path is None:
        remote = options.remote
        remote.parts()
        if not remote.url.isascii():
            raise ConfigurationError(f"The engine's url {remote.shown()!r} is not ASCII. Write its host as xn--….")
        endpoint: Endpoint | None = Endpoint(remote.url.rstrip("/"), remote.token(), ca_file=remote.ca_file)
    else:
        endpoint = endpoint_at(path)
    if endpoint is None:
        raise HostGoneError("No engine listens. The next request starts one.")
    return EngineConnection(endpoint, uuid4().hex if options.is_editor else "")


@contextmanager
def _transport_errors() -> Iterator[None]:
    """Convert transport errors of httpcore into HostGoneError, timeouts into HostSilentError."""
    try:
        yield
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
        if isinstance(error, httpcore.ConnectError) and "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise EngineUnavailableError(
                "The certificate of the engine's host is not trusted. Name the file of its authority in `ca_file`."
            ) from error
        gone = HostSilentError if isinstance(error, httpcore.TimeoutException) else HostGoneError
        raise gone(f"The engine does not answer ({type(error).__name__}). Try again.") from error


def split_events(stream: bytes) -> tuple[list[tuple[str, str]], bytes]:
    """Return the events of a stream so far, each its name and data, and what has begun after them.

    They are server-sent events as draftline's hosts write them: a line each for the name and the data.
    """
    *ended, begun = stream.split(b"\n\n")
    texts = [event.decode("utf-8", "replace") for event in ended]
    fields = [dict(line.partition(": ")[::2] for line in text.split("\n")) for text in texts]
    return [(one.get("event", ""), one["data"]) for one in fields if "data" in one], begun


def _is_stream(reply: httpcore.Response) -> bool:
    kinds = [value.partition(b";")[0].strip() for name, value in reply.headers if name.lower() == b"content-type"]
    return reply.status < _FIRST_ERROR and b"text/event-stream" in kinds


def _error_message(status: int, content: bytes) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):
        sent = json.loads(content)
        if isinstance(sent, dict) and "code" in sent and "message" in sent:
            return sent
    message = f"The engine's address answers with HTTP {status}. Check that an engine listens there."
    return {"code": "engine_unavailable", "message": message}


def _decoded(text: str, decode: Callable[[Any], _T]) -> _T:
    """Read a host's message.

    Raises:
        EngineUnavailableError: It is not a message of ours: another program listens there, or another version.
    """
    try:
        return decode(json.loads(text))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise EngineUnavailableError(
            f"The engine's answer cannot be read ({type(error).__name__}). Is it draftline's own, of this version?"
        ) from error


def _error(message: dict[str, Any]) -> DraftlineError:
    """Return the exception of an error that the host sent, with its code."""
    known = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, DraftlineError)]
    unknown = DraftlineError if message["code"] in _OF_ONE_REQUEST else EngineUnavailableError
    kind = next((kind for kind in known if kind.code == message["code"]), unknown)
    error = kind(message["message"])
    error.code = message["code"]
    return error
