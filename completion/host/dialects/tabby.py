"""The Tabby dialect: `POST /v1/completions` with `segments`, `POST /v1/events` and `GET /v1/health`.

Source: the OpenAPI description of the Tabby server.
"""

from __future__ import annotations

import os
import platform
import uuid
from pathlib import PurePosixPath
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from completion.host.dialects.reply_text import Answer, Reply, reply_with
from completion.host.dialects.schema import ClientModel, sampling_of
from completion.host.services import Host
from completion.paths import version
from completion.request import CompletionRequest, ContextFile

_EVENT_TYPES = frozenset({"view", "select", "dismiss"})


class Snippet(ClientModel):
    """A piece of another file."""

    filepath: str
    body: str


class Segments(ClientModel):
    """The text around the cursor, and snippets from other files with the best first."""

    prefix: str
    suffix: str | None = None
    filepath: str | None = None
    git_url: str | None = None
    declarations: list[Snippet] | None = None
    relevant_snippets_from_changed_files: list[Snippet] | None = None
    relevant_snippets_from_recently_opened_files: list[Snippet] | None = None


class TabbyBody(ClientModel):
    """The body of Tabby's `/v1/completions`: the fields that have an effect. Others are accepted and ignored."""

    segments: Segments
    language: str | None = None
    temperature: float | None = None
    seed: int | None = None


class TabbyEvent(ClientModel):
    """What the user did with a completion."""

    type: str


async def completions(request: Request) -> Response:
    """Serve `POST /v1/completions` with `segments`."""
    completion_request = _request_of(await TabbyBody.read(request))
    return await reply_with(request, completion_request, _Reply(request), stream=False)


async def events(request: Request) -> Response:
    """Serve `POST /v1/events`: count the event by its type and discard the rest."""
    host: Host = request.app.state.host
    event = await TabbyEvent.read(request)
    host.metrics.client_events.labels(event.type if event.type in _EVENT_TYPES else "other").inc()
    return Response(status_code=200)


async def health(request: Request) -> Response:
    """Serve `GET /v1/health`, which Tabby's plugins read before they connect."""
    host: Host = request.app.state.host
    status = host.state.status
    return JSONResponse({
        "model": status.model,
        "device": status.device or "cpu",
        "arch": platform.machine(),
        "cpu_info": platform.processor(),
        "cpu_count": os.cpu_count(),
        "cuda_devices": [],
        "version": {
            "build_date": "",
            "build_timestamp": "",
            "git_sha": "",
            "git_describe": f"draftline {version()}",
        },
    })  # fmt: skip


def _request_of(body: TabbyBody) -> CompletionRequest:
    segments = body.segments
    by_worth = (
        segments.declarations,
        segments.relevant_snippets_from_changed_files,
        segments.relevant_snippets_from_recently_opened_files,
    )
    snippets = [snippet for kind in by_worth for snippet in kind or ()]
    return CompletionRequest(
        prefix=segments.prefix,
        suffix=segments.suffix or "",
        language=body.language or "",
        path=segments.filepath or "",
        repository=PurePosixPath(segments.git_url or "").name.removesuffix(".git"),
        context=tuple(ContextFile(snippet.filepath, snippet.body) for snippet in reversed(snippets)),
        sampling=sampling_of(body.temperature, seed=body.seed),
    )


class _Reply(Reply):
    """The JSON object of one reply, which is never streamed."""

    def whole(self, answer: Answer) -> dict[str, Any]:
        """Return all choices."""
        choices = [{"index": index, "text": text} for index, text in enumerate((answer.text, *answer.others))]
        return {"id": f"cmpl-{uuid.uuid4()}", "choices": choices}
