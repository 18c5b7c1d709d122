"""draftline's own HTTP interface: completions, next edits, preparation, workspaces, closing."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from starlette.requests import Request
from starlette.responses import Response

from completion.edits import NextEdits
from completion.errors import CancelledError, DraftlineError
from completion.host.dialects.schema import read_closing, read_next_edit, read_request, read_workspace
from completion.host.errors import error_body
from completion.host.job import Job, Urgency
from completion.host.services import EventStreamResponse, Host, cancel_when_gone, sender, sse_message
from completion.host.wire import encode


async def complete(request: Request) -> Response:
    """Serve `POST /v1/complete`: cumulative suggestions as server-sent events. `?wait=1` waits for the model."""
    host: Host = request.app.state.host
    stream = host.open_stream(await read_request(request), sender(request))
    wait = request.query_params.get("wait") == "1"
    if not wait:
        stream.submit()

    async def messages() -> AsyncGenerator[bytes]:
        try:
            if wait:
                await stream.submit_when_ready()
            async for event in stream.answers():
                yield sse_message(encode(event))
        except DraftlineError as error:
            yield sse_message(json.dumps(error_body(error)).encode(), event="error")

    return EventStreamResponse(messages(), on_close=stream.close)


async def next_edit(request: Request) -> Response:
    """Serve `POST /v1/next-edit`: what the user's last edits imply for the rest of a document, as JSON."""
    host: Host = request.app.state.host
    stream, edits = host.open_stream(await read_next_edit(request), sender(request)), NextEdits()
    stream.submit()
    async with cancel_when_gone(request, stream), aclosing(stream.answers()) as answers:
        with suppress(CancelledError):
            edits = await anext(answers)
    return Response(encode(edits), media_type="application/json")


async def prepare(request: Request) -> Response:
    """Serve `POST /v1/prepare`: bring the cache up to date for a request that may follow."""
    host: Host = request.app.state.host
    host.prepare(await read_request(request), sender(request))
    return Response(status_code=202)


async def workspace(request: Request) -> Response:
    """Serve `POST /v1/workspace`: queue changes of a workspace. They are accepted before the model is loaded, too."""
    host: Host = request.app.state.host
    own = host.open_texts.whole(host.clients.own(sender(request), await read_workspace(request)))
    host.worker.submit(Job(Urgency.WORKSPACE, own, deliver=lambda _: None))
    return Response(status_code=202)


async def close(request: Request) -> Response:
    """Serve `POST /v1/close`: forget documents and workspaces that the client no longer uses."""
    host: Host = request.app.state.host
    host.clients.close(sender(request), await read_closing(request))
    return Response(status_code=202)
