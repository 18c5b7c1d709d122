"""Our own requests to the engine over HTTP, health and metrics; other servers' requests lie beside, in host_*.py."""

from __future__ import annotations

import json
import os
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import psutil
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from completion.host_address import version
from completion.host_idle import IdleWatch
from completion.host_metrics import HostMetrics
from completion.host_schema import WORKSPACE, parse_body, parse_request
from completion.host_state import HostPhase, HostState
from completion.host_stream import CompletionStream, EventStreamResponse, require_ready, sse_message, with_errors
from completion.host_wire import encode
from completion.host_worker import EngineWorker, Job, Urgency
from completion.request import CompletionRequest


@dataclass(frozen=True, slots=True)
class Host:
    """The parts that handlers work with; one per process."""

    state: HostState
    worker: EngineWorker
    metrics: HostMetrics
    idle: IdleWatch
    started: float

    def open_stream(self, request: CompletionRequest) -> CompletionStream:
        """A completion that is not queued yet."""
        return CompletionStream(self.state, self.worker, self.idle, request)

    def prepare(self, request: CompletionRequest) -> None:
        """Queue a preparation; nobody waits for it."""
        require_ready(self.state)
        self.worker.submit(Job(Urgency.PREPARE, request, deliver=lambda _: None))

    def health(self) -> dict[str, Any]:
        """The host's state as clients see it."""
        status = self.state.status
        return {
            "status": "ok" if status.phase is HostPhase.READY else status.phase.value,
            "state": status.phase.value,
            "percent": round(status.percent, 1),
            "sentence": status.sentence,
            "code": status.code,
            "model": status.model,
            "device": status.device,
            "context_tokens": status.context_tokens,
            "pid": os.getpid(),
            "version": version(),
            "memory_bytes": psutil.Process().memory_info().rss,
            "uptime_s": round(time.monotonic() - self.started, 1),
            "busy": self.worker.busy,
        }


async def complete(request: Request) -> Response:
    """`POST /v1/complete`: cumulative suggestions as server-sent events; `?wait=1` waits while the model loads."""
    host: Host = request.app.state.host
    stream = host.open_stream(parse_request(await request.body()))
    wait = request.query_params.get("wait") == "1"
    if not wait:
        stream.submit()

    async def messages() -> AsyncGenerator[bytes]:
        if wait:
            await stream.submit_when_ready()
        async for event in stream.events():
            yield sse_message(encode(event))

    return EventStreamResponse(with_errors(messages()), on_close=stream.close)


async def prepare(request: Request) -> Response:
    """`POST /v1/prepare`: bring the cache up to date for a request that may follow."""
    host: Host = request.app.state.host
    host.prepare(parse_request(await request.body()))
    return Response(status_code=202)


async def workspace(request: Request) -> Response:
    """`POST /v1/workspace`: what changed in a workspace; accepted before the model is loaded, too."""
    host: Host = request.app.state.host
    update = parse_body(WORKSPACE, await request.body())
    host.worker.submit(Job(Urgency.WORKSPACE, update, deliver=lambda _: None))
    return Response(status_code=202)


async def lease(request: Request) -> Response:
    """`GET /v1/lease`: keeps the host alive while it is open, and tells each change of its state."""
    host: Host = request.app.state.host

    async def messages() -> AsyncGenerator[bytes]:
        with host.idle.in_use(), host.metrics.leases.track_inprogress():
            async for status in host.state.changes():
                yield sse_message(json.dumps(host.health()).encode())
                if status.phase is HostPhase.STOPPING:
                    return

    return EventStreamResponse(messages())


async def health(request: Request) -> Response:
    """`GET /health`: state, model, device, memory."""
    host: Host = request.app.state.host
    return JSONResponse(host.health())


async def metrics(request: Request) -> Response:
    """`GET /metrics`: Prometheus' text format."""
    host: Host = request.app.state.host
    return Response(host.metrics.exposition(), media_type="text/plain; version=0.0.4; charset=utf-8")
