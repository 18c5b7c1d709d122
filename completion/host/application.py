"""The ASGI application: routes of draftline's own HTTP interface and of the other dialects, and error handlers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import cast

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from completion.errors import DraftlineError
from completion.host.dialects.error_shapes import error_response
from completion.host.dialects.host_state import health, lease, metrics
from completion.host.errors import EngineFailedError, NotFoundError
from completion.host.process.guard import Guard
from completion.host.services import Host

_Handler = Callable[[Request], Awaitable[Response]]


def dialect(name: str) -> ModuleType:
    """Import a module of `dialects`. They validate with pydantic, which takes 0.1 s and 10 MB, and few serve a host."""
    return import_module(f"completion.host.dialects.{name}")


def _of_dialect(name: str, handler: str) -> _Handler:
    """Return a handler of a dialect. Its first request imports the dialect, while the event loop serves others."""
    found: _Handler | None = None

    async def handle(request: Request) -> Response:
        nonlocal found
        if found is None:
            found = cast("_Handler", getattr(await asyncio.to_thread(dialect, name), handler))
        return await found(request)

    return handle


_OWN_ROUTES = [
    Route("/v1/complete", _of_dialect("draftline", "complete"), methods=["POST"]),
    Route("/v1/next-edit", _of_dialect("draftline", "next_edit"), methods=["POST"]),
    Route("/v1/prepare", _of_dialect("draftline", "prepare"), methods=["POST"]),
    Route("/v1/workspace", _of_dialect("draftline", "workspace"), methods=["POST"]),
    Route("/v1/close", _of_dialect("draftline", "close"), methods=["POST"]),
    Route("/v1/lease", lease, methods=["GET"]),
    Route("/metrics", metrics, methods=["GET"]),
]


_openai_completions = _of_dialect("openai", "completions")
_tabby_completions = _of_dialect("tabby", "completions")


async def _completions(request: Request) -> Response:
    """Dispatch `/v1/completions`, which OpenAI and Tabby share: only Tabby's bodies have `segments`."""
    text = await request.body()
    try:
        body = json.loads(text) if b'"segments"' in text else None
    except ValueError:
        body = None
    is_tabby = isinstance(body, dict) and "segments" in body
    return await (_tabby_completions if is_tabby else _openai_completions)(request)


_DIALECT_ROUTES = [
    Route("/health", health, methods=["GET"]),
    Route("/infill", _of_dialect("llama_cpp", "infill"), methods=["POST"]),
    Route("/completion", _of_dialect("llama_cpp", "completion"), methods=["POST"]),
    Route("/props", _of_dialect("llama_cpp", "props"), methods=["GET"]),
    Route("/v1/completions", _completions, methods=["POST"]),
    Route("/beta/completions", _openai_completions, methods=["POST"]),
    Route("/v1/chat/completions", _of_dialect("chat", "completions"), methods=["POST"]),
    Route("/v1/models", _of_dialect("openai", "models"), methods=["GET"]),
    Route("/v1/fim/completions", _of_dialect("mistral", "fim_completions"), methods=["POST"]),
    Route("/api/generate", _of_dialect("ollama", "generate"), methods=["POST"]),
    Route("/api/show", _of_dialect("ollama", "show"), methods=["POST"]),
    Route("/api/tags", _of_dialect("ollama", "tags"), methods=["GET"]),
    Route("/api/version", _of_dialect("ollama", "version"), methods=["GET"]),
    Route("/v1/events", _of_dialect("tabby", "events"), methods=["POST"]),
    Route("/v1/health", _of_dialect("tabby", "health"), methods=["GET"]),
]


def application(host: Host, *, tokens: Mapping[str, str], allow_local: bool, body_limit_bytes: int) -> Starlette:
    """Build the application of one host.

    Args:
        host: Services that the handlers use.
        tokens: Users' names by the tokens of which TCP requests must have one; without any, every one is refused.
        allow_local: Whether the interfaces of other servers need no token. draftline's own always needs one: its keys
            name documents and workspaces of other clients.
        body_limit_bytes: Maximum size of a request body.
    """
    open_paths = frozenset(route.path for route in _DIALECT_ROUTES) if allow_local else frozenset()
    app = Starlette(
        routes=[*_OWN_ROUTES, *_DIALECT_ROUTES],
        middleware=[Middleware(Guard, tokens=tokens, open_paths=open_paths, body_limit_bytes=body_limit_bytes)],
        exception_handlers={
            DraftlineError: _on_error,
            ClientDisconnect: _client_disconnected,
            404: _not_found,
            405: _not_found,
            Exception: _internal_error,
        },
    )
    app.router.redirect_slashes = False  # the address of a redirection would lack the token before the path
    app.state.host = host
    return app


async def _on_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, DraftlineError):
        raise error
    return error_response(error, request.url.path)


async def _client_disconnected(_request: Request, _error: Exception) -> Response:
    """Return a reply that is never read: the client disconnected before its request was complete."""
    return Response(status_code=400)


async def _not_found(request: Request, error: Exception) -> Response:
    path = request.url.path
    message = f"The host has no endpoint {request.method} {path}. See docs/http-api.md for its endpoints."
    return error_response(NotFoundError(message), path, error.status_code if isinstance(error, HTTPException) else 404)


async def _internal_error(request: Request, error: Exception) -> Response:
    return error_response(EngineFailedError.of("The request", error), request.url.path)
