"""Checks before every request: the token on TCP, that no web page sends it, and what the body costs."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from urllib.parse import unquote_to_bytes, urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from completion.errors import DraftlineError
from completion.host.dialects.body_budget import ArrivingBody, JsonCount, UnfinishedBodies, budget_of
from completion.host.dialects.error_shapes import error_response
from completion.host.errors import UnauthorizedError, WebPageError
from completion.remote.address import is_loopback

_TOKEN_PREFIX = b"/t/"


class Guard:
    """ASGI middleware that checks the token and the body's budget. The Unix socket needs no token: its mode is 0600.

    The scope's `user` is the name that belongs to the token, "" for the host's own user. Requests to `open_paths` need
    none, if no browser sends them.
    """

    def __init__(
        self, app: ASGIApp, *, tokens: Mapping[str, str], open_paths: AbstractSet[str], body_limit_bytes: int
    ) -> None:
        self._app = app
        self._users = {token.encode(): user for token, user in tokens.items()}
        self._open_paths = open_paths
        self._body_limit_bytes = body_limit_bytes
        self._unfinished = UnfinishedBodies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, scope = Headers(scope=scope), {**scope, "user": ""}
        is_tcp = scope.get("server") is None or scope["server"][1] is not None  # a Unix socket has no port
        token, scope = _without_token(scope) if is_tcp else (None, scope)
        body = ArrivingBody(self._body_limit_bytes, JsonCount(budget_of(scope["path"])), self._unfinished)
        try:
            if is_tcp:
                scope["user"] = self._sender(scope, token, headers)
            body.announce(int(headers.get("content-length", "0")))
        except DraftlineError as error:
            await error_response(error, scope["path"])(scope, receive, send)
            return
        try:
            await self._app(scope, _limited(receive, body), send)
        finally:
            body.close()

    def _sender(self, scope: Scope, token: bytes | None, headers: Headers) -> str:
        """Return the name of a request's user by the token that was in its path, None if there was none.

        Raises:
            UnauthorizedError: The token is missing or wrong, and the path is not open.
            WebPageError: The token is missing, and a web page may have sent the request.
        """
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        given = bearer.strip().encode() if token is None and scheme.lower() == "bearer" else token
        if given is not None and (user := self._user(given)) is not None:
            return user
        if token is None and scope["path"] in self._open_paths:
            _check_no_web_page(scope["method"], headers)
            return ""
        raise UnauthorizedError(
            "The token is missing or wrong. Send `Authorization: Bearer TOKEN` with the host's token, or put /t/TOKEN "
            "before the path."
        )

    def _user(self, token: bytes) -> str | None:
        return next((user for known, user in self._users.items() if hmac.compare_digest(token, known)), None)


def _limited(receive: Receive, body: ArrivingBody) -> Receive:
    async def limited() -> Message:
        message = await receive()
        if message["type"] == "http.request":
            body.add(message.get("body", b""), more=message.get("more_body", False))
        return message

    return limited


def _without_token(scope: Scope) -> tuple[bytes | None, Scope]:
    """Return the token before a request's path, None if there is none, and the request without it."""
    path = scope["raw_path"]
    if not path.startswith(_TOKEN_PREFIX):
        return None, scope
    token, slash, rest = path.removeprefix(_TOKEN_PREFIX).partition(b"/")
    inner = slash + rest
    path = unquote_to_bytes(inner).decode("utf-8", "replace")
    return unquote_to_bytes(token), {**scope, "raw_path": inner, "path": path}


def _check_no_web_page(method: str, headers: Headers) -> None:
    """Check that no web page sent a request without a token.

    A page's fetch, form and WebSocket have an Origin, its other requests a Sec-Fetch-Site. A page whose name resolves
    to this computer (DNS rebinding) has that name in Host. A page cannot send JSON to another origin without a
    preflight request, which has an Origin.
    """
    if "origin" in headers or headers.get("sec-fetch-site", "none") != "none":
        raise WebPageError("A web page sent this request. Pages may not use the engine without its token.")
    if not _names_loopback(headers.get("host", "")):
        raise WebPageError("The header Host does not name this computer. Connect to 127.0.0.1 or localhost.")
    if method == "POST" and headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise WebPageError("The request has no `Content-Type: application/json`, which is needed without the token.")


def _names_loopback(host: str) -> bool:
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False
