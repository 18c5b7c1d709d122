"""What the host says of itself: leases with its state, health, metrics. It answers this before it is ready."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from completion.host.services import EventStreamResponse, Host, sender, sse_message
from completion.host.state import HostPhase


async def lease(request: Request) -> Response:
    """Serve `GET /v1/lease`: keep the host alive while the stream is open, and send each change of its state."""
    host: Host = request.app.state.host

    async def messages() -> AsyncGenerator[bytes]:
        connected = host.clients.connected(sender(request))
        with host.idle.in_use(), host.metrics.leases.track_inprogress(), connected:
            async for status in host.state.changes():
                yield sse_message(json.dumps(host.health()).encode())
                if status.phase is HostPhase.STOPPING:
                    return

    return EventStreamResponse(messages())


async def health(request: Request) -> Response:
    """Serve `GET /health`: state, model, device, memory. `?memory=1` adds where the memory is."""
    host: Host = request.app.state.host
    found = host.health()
    if request.query_params.get("memory") == "1":
        found["memory"] = (await asyncio.to_thread(host.metrics.memory)).to_json()
    return JSONResponse(found)


async def metrics(request: Request) -> Response:
    """Serve `GET /metrics`: metrics in Prometheus' text format."""
    host: Host = request.app.state.host
    exposition = await asyncio.to_thread(host.metrics.exposition)
    return Response(exposition, media_type="text/plain; version=0.0.4; charset=utf-8")
