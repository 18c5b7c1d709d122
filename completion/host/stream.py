"""One request's way from the event loop to the model's thread and back, and server-sent events on the wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from completion.errors import DraftlineError
from completion.host.errors import error_body, not_ready_error
from completion.host.process.idle import IdleWatch
from completion.host.state import HostPhase, HostState
from completion.host.worker import EngineWorker, Job, Urgency
from completion.request import CompletionEvent, CompletionRequest


class CompletionStream:
    """The events of one completion. `close` cancels it within one model step, at whatever point it is."""

    def __init__(self, state: HostState, worker: EngineWorker, idle: IdleWatch, request: CompletionRequest) -> None:
        self._state = state
        self._worker = worker
        self._idle = idle
        self._events: asyncio.Queue[CompletionEvent | DraftlineError] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._job = Job(Urgency.COMPLETE, request, self._deliver)

    def _deliver(self, item: CompletionEvent | DraftlineError) -> None:
        self._loop.call_soon_threadsafe(self._events.put_nowait, item)

    def submit(self) -> None:
        """Queue the request.

        Raises:
            EngineLoadingError: The model is not loaded yet.
            EngineUnavailableError: The model cannot be loaded, or the host is stopping.
            QueueFullError: Too many requests wait.
        """
        require_ready(self._state)
        self._worker.submit(self._job)

    async def submit_when_ready(self) -> None:
        """Wait until the model is loaded, then queue the request; raises as `submit`."""
        with self._idle.in_use():
            await self._state.settled()
        self.submit()

    async def events(self) -> AsyncGenerator[CompletionEvent]:
        """Every event up to the last one.

        Raises:
            DraftlineError: What ended the request.
        """
        with self._idle.in_use():
            done = False
            while not done:
                item = await self._events.get()
                if isinstance(item, DraftlineError):
                    raise item
                done = item.done
                yield item

    def close(self) -> None:
        """Nobody waits for the rest."""
        self._job.cancel.cancel()


def require_ready(state: HostState) -> None:
    """Refuse a request that the model cannot serve now.

    Raises:
        EngineLoadingError: The model is not loaded yet.
        EngineUnavailableError: The model cannot be loaded, or the host is stopping.
    """
    if state.status.phase is not HostPhase.READY:
        raise not_ready_error(state.status)


@asynccontextmanager
async def cancel_when_gone(request: Request, stream: CompletionStream) -> AsyncIterator[None]:
    """While a reply in one piece is made: a client that goes away cancels it."""
    watch = asyncio.create_task(_disconnected(request))
    watch.add_done_callback(lambda _: stream.close())
    try:
        yield
    finally:
        watch.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


class EventStreamResponse(StreamingResponse):
    """Server-sent events. When the reply ends, however it ends, its source is closed.

    Own instead of a library's, because the known one wakes up twice a second while a stream is open.
    """

    media_type = "text/event-stream"

    def __init__(self, messages: AsyncGenerator[bytes], on_close: Callable[[], None] = lambda: None) -> None:
        super().__init__(messages, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._messages = messages
        self._on_close = on_close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._on_close()
            await self._messages.aclose()


def sse_message(data: bytes, event: str = "") -> bytes:
    """One server-sent event; `data` has no line breaks.

    Source: HTML Living Standard, section 9.2.6 "Interpreting an event stream".
    """
    name = f"event: {event}\n".encode() if event else b""
    return name + b"data: " + data + b"\n\n"


async def with_errors(messages: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """The same messages; an error in their midst becomes a last event named "error"."""
    try:
        async for message in messages:
            yield message
    except DraftlineError as error:
        yield sse_message(json.dumps(error_body(error)).encode(), event="error")


async def with_error_objects(messages: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """The same messages; an error in their midst becomes a last message, as other servers write it."""
    try:
        async for message in messages:
            yield message
    except DraftlineError as error:
        yield sse_message(json.dumps({"error": error_body(error)}).encode())
