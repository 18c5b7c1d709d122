"""The HTTP half of the engine's client. Importing httpx takes 100 ms, so `engine_client` does it when it connects."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx
from httpx_sse import EventSource, SSEError

from completion import errors
from completion.errors import DraftlineError, EngineUnavailableError
from completion.host.clients import CLIENT_HEADER
from completion.host.wire import decode_event, encode
from completion.request import Closing, CompletionEvent, CompletionRequest, WorkspaceUpdate
from lsp_server.engine.launcher import HostGoneError, HostSilentError

_CONNECT_S = 5.0
# A prompt of thousands of tokens on a slow machine may take long before its first text.
_READ_S = 120.0
_FAREWELL_S = 1.0  # a host that hangs must not keep the editor from closing
_EVENT_STREAM = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
_T = TypeVar("_T")


class EngineConnection:
    """Speaks to one host over its Unix socket, or over TCP with a token."""

    def __init__(self, socket_path: Path | None, url: str = "", token: str = "", client: str = "") -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        headers |= {CLIENT_HEADER: client} if client else {}
        self._http = httpx.AsyncClient(
            # Reading certificates takes 20 ms, and a socket has none.
            transport=httpx.AsyncHTTPTransport(
                uds=str(socket_path) if socket_path else None, verify=url.startswith("https:")
            ),
            base_url=url or "http://draftline",
            headers=headers,
            timeout=httpx.Timeout(_READ_S, connect=_CONNECT_S),
        )
        self._unfinished: set[asyncio.Task[Any]] = set()

    async def states(self) -> AsyncGenerator[dict[str, Any]]:
        """Hold a lease; the host's health now and after each change, for as long as it lives.

        Raises:
            HostGoneError: At the latest when the host ends.
            DraftlineError: The host refuses the connection.
        """
        async with self._stream("GET", "/v1/lease", timeout=httpx.Timeout(None, connect=_CONNECT_S)) as source:
            async for event in source.aiter_sse():
                yield json.loads(event.data)
        raise HostGoneError("The engine ended.")

    async def complete(self, request: CompletionRequest) -> AsyncGenerator[CompletionEvent]:
        """Stream the events of a request; closing the generator cancels it.

        Raises:
            HostGoneError: The host ended before the last event.
            DraftlineError: What the host answered instead.
        """
        async with self._stream("POST", "/v1/complete", content=encode(request)) as source:
            async for sent in source.aiter_sse():
                message = json.loads(sent.data)
                if sent.event == "error":
                    raise _error(message)
                event = decode_event(message)
                yield event
                if event.done:
                    return
        raise HostGoneError("The engine ended in the middle of a request.")

    async def post(self, path: str, message: CompletionRequest | WorkspaceUpdate | Closing) -> None:
        """Send what has no answer.

        Raises:
            HostGoneError: No host answers.
            DraftlineError: The host refuses it.
        """
        with _transport_errors():
            reply = await self._http.post(path, content=encode(message))
        if reply.is_error:
            raise _error(_json_of(reply))

    async def health(self, within_s: float) -> dict[str, Any]:
        """The host's health.

        Raises:
            HostSilentError: The host does not answer within `within_s` seconds.
            HostGoneError: No host listens.
            DraftlineError: The host refuses the connection.
        """
        with _transport_errors():
            reply = await self._http.get("/health", timeout=within_s)
        if reply.is_error:
            raise _error(_json_of(reply))
        health: dict[str, Any] = reply.json()
        return health

    async def close(self) -> None:
        """Close every connection; the host sees that at once."""
        if self._unfinished:
            await asyncio.wait(self._unfinished, timeout=_FAREWELL_S)
        await self._http.aclose()

    @asynccontextmanager
    async def _stream(self, method: str, path: str, **options: Any) -> AsyncIterator[EventSource]:  # noqa: ANN401 - httpx checks them
        request = self._http.build_request(method, path, headers=_EVENT_STREAM, **options)
        with _transport_errors():
            response = await self._open(request)
            try:
                if response.is_error:
                    await response.aread()
                    raise _error(_json_of(response))
                yield EventSource(response)
            finally:
                await asyncio.shield(self._start(response.aclose()))

    async def _open(self, request: httpx.Request) -> httpx.Response:
        """Send a request. Cancelled meanwhile, it is sent all the same, and closed as soon as the host replies.

        The pool loses a connection for good where a request is cancelled between its connecting and its sending:
        after a hundred of them no request would ever be sent again.
        """
        opening = self._start(self._http.send(request, stream=True))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(self._close_unwanted)
            raise

    def _close_unwanted(self, opening: asyncio.Task[httpx.Response]) -> None:
        if not opening.cancelled() and opening.exception() is None:
            self._start(opening.result().aclose())

    def _start(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """Begin what must be brought to its end, whoever waits for it."""
        task = asyncio.create_task(work)
        self._unfinished.add(task)
        task.add_done_callback(self._unfinished.discard)
        return task


class _transport_errors:  # noqa: N801 - reads as a statement
    """Turns every failure of the transport into HostGoneError."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, httpx.TransportError | SSEError):
            gone = HostSilentError if isinstance(error, httpx.TimeoutException) else HostGoneError
            raise gone(f"The engine does not answer ({type(error).__name__}).") from error


def _json_of(reply: httpx.Response) -> dict[str, Any]:
    try:
        message = reply.json()
    except ValueError:
        message = None
    if isinstance(message, dict) and "code" in message and "message" in message:
        return message
    return {"code": "engine_unavailable", "message": f"The address answers with HTTP {reply.status_code}."}


def _error(message: dict[str, Any]) -> DraftlineError:
    """The exception of an error that came over the wire, with its code."""
    known = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, DraftlineError)]
    kind = next((kind for kind in known if kind.code == message["code"]), EngineUnavailableError)
    error = kind(message["message"])
    error.code = message["code"]
    return error
