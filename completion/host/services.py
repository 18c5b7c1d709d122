"""What the HTTP handlers use of a running host: its services, and the answers to a request as a stream."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, TypeVar

import psutil
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from completion.edits import NextEditRequest, NextEdits
from completion.errors import DraftlineError
from completion.host.errors import require_ready
from completion.host.job import Job, Urgency
from completion.host.metrics import HostMetrics
from completion.host.open_texts import OpenTexts
from completion.host.process.clients import CLIENT_HEADER, Client, HostClients
from completion.host.state import HostPhase, HostState, IdleWatch
from completion.host.worker import EngineWorker
from completion.paths import version
from completion.request import CompletionEvent, CompletionRequest

Answer = TypeVar("Answer", CompletionEvent, NextEdits)


class RequestStream(Generic[Answer]):
    """The answers to one request: a completion's events, or next edits. `close` cancels it within one model step."""

    def __init__(self, host: Host, request: CompletionRequest | NextEditRequest) -> None:
        self._host = host
        self._answers: asyncio.Queue[Answer | DraftlineError] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        urgency = Urgency.NEXT_EDIT
        if isinstance(request, CompletionRequest):
            urgency = Urgency.AHEAD if request.ahead else Urgency.COMPLETE
        self._job = Job(urgency, request, self._deliver)

    def _deliver(self, answer: Answer | DraftlineError) -> None:
        self._loop.call_soon_threadsafe(self._answers.put_nowait, answer)

    def submit(self) -> None:
        """Queue the request.

        Raises:
            EngineLoadingError: The model is not loaded yet.
            EngineUnavailableError: The model failed to load, or the host is stopping.
            QueueFullError: Too many requests wait.
        """
        require_ready(self._host.state.status)
        self._host.worker.submit(self._job)

    async def submit_when_ready(self) -> None:
        """Wait until the model is loaded, then queue the request. The errors are those of `submit`."""
        with self._host.idle.in_use():
            await self._host.state.settled()
        self.submit()

    async def answers(self) -> AsyncGenerator[Answer]:
        """Yield every answer up to the last.

        Raises:
            DraftlineError: The request failed.
        """
        with self._host.idle.in_use():
            done = False
            while not done:
                answer = await self._answers.get()
                if isinstance(answer, DraftlineError):
                    raise answer
                done = isinstance(answer, NextEdits) or answer.done
                yield answer

    def close(self) -> None:
        """Cancel the request, whether it waits or runs."""
        self._host.worker.withdraw(self._job)


@asynccontextmanager
async def cancel_when_gone(request: Request, stream: RequestStream[Any]) -> AsyncIterator[None]:
    """Cancel the stream if its client disconnects within the block, which computes an unstreamed reply."""
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


@dataclass(frozen=True, slots=True)
class Host:
    """The services of one host.

    Attributes:
        started: Time of the host's start on the monotonic clock, in seconds.
    """

    state: HostState
    worker: EngineWorker
    clients: HostClients
    metrics: HostMetrics
    idle: IdleWatch
    started: float
    open_texts: OpenTexts = field(default_factory=OpenTexts)

    def open_stream(self, request: CompletionRequest | NextEditRequest, client: Client) -> RequestStream[Any]:
        """Return the stream of a client's request that is not queued yet."""
        return RequestStream(self, self.clients.own(client, request))

    def prepare(self, request: CompletionRequest, client: Client) -> None:
        """Queue a client's preparation, whose end is not waited for. The errors are those of `RequestStream.submit`."""
        require_ready(self.state.status)
        self.worker.submit(Job(Urgency.PREPARE, self.clients.own(client, request), deliver=lambda _: None))

    def health(self) -> dict[str, Any]:
        """Return the host's state as JSON values for clients."""
        status = asdict(self.state.status)
        phase = status.pop("phase")
        return {
            **status,
            "status": "ok" if phase is HostPhase.READY else phase,
            "state": phase,
            "percent": round(status["percent"], 1),
            "pid": os.getpid(),
            "version": version(),
            "memory_bytes": psutil.Process().memory_info().rss,
            "uptime_s": round(time.monotonic() - self.started, 1),
            "busy": self.worker.busy,
        }


def sender(request: Request) -> Client:
    """Return who sent a request."""
    return Client(request.headers.get(CLIENT_HEADER, ""), request.scope["user"])
