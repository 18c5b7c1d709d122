"""Streams of completion events from the model's thread to the event loop, and their encoding as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from completion.edits import NextEditRequest, NextEdits
from completion.errors import CancelledError, DraftlineError
from completion.host.errors import error_body, not_ready_error
from completion.host.job import Job, Urgency
from completion.host.process.idle import IdleWatch
from completion.host.state import HostPhase, HostState
from completion.host.worker import EngineWorker
from completion.request import CompletionEvent, CompletionRequest


class CompletionStream:
    """The events of one completion. `close` cancels it within one model step, whether it waits or runs."""

    def __init__(self, state: HostState, worker: EngineWorker, idle: IdleWatch, request: CompletionRequest) -> None:
        self._state = state
        self._worker = worker
        self._idle = idle
        self._events: asyncio.Queue[CompletionEvent | DraftlineError] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._job = Job(Urgency.AHEAD if request.ahead else Urgency.COMPLETE, request, self._deliver)

    def _deliver(self, item: CompletionEvent | DraftlineError) -> None:
        self._loop.call_soon_threadsafe(self._events.put_nowait, item)

    def submit(self) -> None:
        """Queue the request.

        Raises:
            EngineLoadingError: The model is not loaded yet.
            EngineUnavailableError: The model failed to load, or the host is stopping.
            QueueFullError: Too many requests wait.
        """
        require_ready(self._state)
        self._worker.submit(self._job)

    async def submit_when_ready(self) -> None:
        """Wait until the model is loaded, then queue the request. The errors are those of `submit`."""
        with self._idle.in_use():
            await self._state.settled()
        self.submit()

    async def events(self) -> AsyncGenerator[CompletionEvent]:
        """Yield every event up to the last.

        Raises:
            DraftlineError: The request failed.
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
        """Cancel the completion."""
        self._worker.withdraw(self._job)


class NextEditAnswer:
    """The answer to one request for next edits. `close` cancels it within one layer of a pass."""

    def __init__(self, worker: EngineWorker, idle: IdleWatch, request: NextEditRequest) -> None:
        """Queue the request.

        Raises:
            EngineUnavailableError: The host is stopping.
            QueueFullError: Too many requests wait.
        """
        self._worker = worker
        self._idle = idle
        self._answers: asyncio.Queue[NextEdits | DraftlineError] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._job = Job(Urgency.NEXT_EDIT, request, self._deliver)
        worker.submit(self._job)

    def _deliver(self, answer: NextEdits | DraftlineError) -> None:
        self._loop.call_soon_threadsafe(self._answers.put_nowait, answer)

    async def edits(self) -> NextEdits:
        """Return the edits, none if the request was cancelled.

        Raises:
            DraftlineError: The request failed.
        """
        with self._idle.in_use():
            answer = await self._answers.get()
        if isinstance(answer, CancelledError):
            return NextEdits()
        if isinstance(answer, DraftlineError):
            raise answer
        return answer

    def close(self) -> None:
        """Cancel the request."""
        self._worker.withdraw(self._job)


def require_ready(state: HostState) -> None:
    """Check that the model is ready.

    Raises:
        EngineLoadingError: The model is not loaded yet.
        EngineUnavailableError: The model failed to load, or the host is stopping.
    """
    if state.status.phase is not HostPhase.READY:
        raise not_ready_error(state.status)


@asynccontextmanager
async def cancel_when_gone(request: Request, stream: CompletionStream | NextEditAnswer) -> AsyncIterator[None]:
    """Cancel the stream or answer if its client disconnects within the block, which computes an unstreamed reply."""
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
    """A streamed reply, by default of server-sent events. When it ends, for whatever reason, its source is closed.

    sse-starlette is no alternative: it wakes up twice a second while a stream is open.
    """

    def __init__(
        self,
        messages: AsyncGenerator[bytes],
        on_close: Callable[[], None] = lambda: None,
        media_type: str = "text/event-stream",
    ) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(messages, headers=headers, media_type=media_type)
        self._messages = messages
        self._on_close = on_close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the messages, then close their source."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._on_close()
            await self._messages.aclose()


def sse_message(data: bytes, event: str = "") -> bytes:
    """Encode one server-sent event; `data` must not contain line breaks.

    Source: HTML Living Standard, section 9.2.6 "Interpreting an event stream".
    """
    name = f"event: {event}\n".encode() if event else b""
    return name + b"data: " + data + b"\n\n"


async def with_errors(messages: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """Yield the messages. An error becomes a final event named "error"."""
    try:
        async for message in messages:
            yield message
    except DraftlineError as error:
        yield sse_message(json.dumps(error_body(error)).encode(), event="error")
