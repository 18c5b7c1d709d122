"""Checks before every request: the bearer token on TCP, and the size of the body."""

from __future__ import annotations

import hmac

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from completion.errors import DraftlineError
from completion.host.dialects.error_shapes import error_response
from completion.host.errors import BodyTooLargeError, UnauthorizedError


class Guard:
    """ASGI middleware that checks the token and the body's size. The Unix socket needs no token: its mode is 0600."""

    def __init__(self, app: ASGIApp, *, token: str, body_limit_bytes: int) -> None:
        self._app = app
        self._token = token.encode()
        self._body_limit_bytes = body_limit_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            headers = Headers(scope=scope)
            if not _came_over_unix_socket(scope):
                self._check_token(headers.get("authorization", ""))
            self._check_length(int(headers.get("content-length", "0")))
        except DraftlineError as error:
            await error_response(error, scope["path"])(scope, receive, send)
            return
        await self._app(scope, self._limited(receive), send)

    def _check_token(self, authorization: str) -> None:
        scheme, _, token = authorization.partition(" ")
        known = bool(self._token) and hmac.compare_digest(token.strip().encode(), self._token)
        if scheme.lower() != "bearer" or not known:
            raise UnauthorizedError(
                "The bearer token is missing or wrong. Send `Authorization: Bearer TOKEN` with the host's token."
            )

    def _check_length(self, length_bytes: int) -> None:
        if length_bytes > self._body_limit_bytes:
            raise BodyTooLargeError(f"The body exceeds the limit of {self._body_limit_bytes:,} bytes. Send less text.")

    def _limited(self, receive: Receive) -> Receive:
        received_bytes = 0

        async def limited() -> Message:
            nonlocal received_bytes
            message = await receive()
            received_bytes += len(message.get("body", b""))
            self._check_length(received_bytes)
            return message

        return limited


def _came_over_unix_socket(scope: Scope) -> bool:
    server = scope.get("server")
    return server is not None and server[1] is None
