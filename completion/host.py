"""The HTTP application around the engine: our own requests, health and metrics; other clients' ways in host_*.py."""

from __future__ import annotations

import json
import os
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import psutil
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from completion.errors import DraftlineError
from completion.host_address import version
from completion.host_errors import error_response
from completion.host_guard import Guard
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


async def _on_error(_request: Request, error: Exception) -> Response:
    if not isinstance(error, DraftlineError):
        raise error
    return error_response(error)


async def _not_found(request: Request, error: Exception) -> Response:
    body = {"code": "not_found", "message": f"There is nothing at {request.method} {request.url.path}."}
    return JSONResponse(body, status_code=error.status_code if isinstance(error, HTTPException) else 404)


async def _unforeseen(_request: Request, error: Exception) -> Response:
    error_type = type(error).__name__
    body = {"code": "internal", "message": f"The host met an error ({error_type}). Its log says where."}
    return JSONResponse(body, status_code=500)


def application(host: Host, *, token: str, body_limit_bytes: int) -> Starlette:
    """Put the handlers together.

    Args:
        host: What they work with.
        token: Bearer token that TCP connections must show; "" refuses all of them.
        body_limit_bytes: Longest body that is read.
    """
    routes = [
        Route("/v1/complete", complete, methods=["POST"]),
        Route("/v1/prepare", prepare, methods=["POST"]),
        Route("/v1/workspace", workspace, methods=["POST"]),
        Route("/v1/lease", lease, methods=["GET"]),
        Route("/health", health, methods=["GET"]),
        Route("/metrics", metrics, methods=["GET"]),
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Guard, token=token, body_limit_bytes=body_limit_bytes)],
        exception_handlers={DraftlineError: _on_error, 404: _not_found, 405: _not_found, Exception: _unforeseen},
    )
    app.state.host = host
    return app
