"""Checks before every request: the token on TCP, that no web page sends it, and what the body costs."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes, urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from completion.errors import DraftlineError
from completion.host.dialects.error_shapes import error_response
from completion.host.errors import BodyInvalidError, BodyTooLargeError, QueueFullError, UnauthorizedError, WebPageError
from completion.remote.address import is_loopback

_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_PART_BYTES = 64
"""Memory of a part of a body besides its bytes."""
_LINES = 100_000
"""Number of values where each costs the parser 50 ns and no object of ours: the lines of a document."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The maximum of what a body contains. The largest that it allows is parsed and validated in some milliseconds.

    Attributes:
        values: Number of values in arrays and objects; a file of context has two or three.
        keys: Number of keys of objects; each that is unknown is a fault with a message.
    """

    values: int = 4_096
    keys: int = 4_096
    depth: int = 64


_BUDGETS = {"/v1/next-edit": Budget(values=_LINES), "/api/generate": Budget(values=_LINES)}
"""The bodies that have long lists of strings or numbers; Ollama's `context` is one number a token."""


def budget_of(path: str) -> Budget:
    """Return the budget of the bodies of an address."""
    return _BUDGETS.get(path, Budget())


class JsonCount:
    """Counts the values, keys and depth of a JSON text that arrives in parts.

    It reads brackets, commas and colons outside of strings, so the counts are exact for every text up to its first
    syntax error, where a parser stops.
    """

    __slots__ = ("_budget", "_depth", "_escape", "_in_string", "_keys", "_quotes", "_values")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._values = self._keys = self._depth = self._quotes = 0
        self._in_string, self._escape = False, b""

    def add(self, part: bytes) -> None:
        """Count the next part, in time linear in it.

        Raises:
            BodyInvalidError: The text exceeds its budget.
        """
        text = (self._escape + part).replace(b"\\\\", b"")
        self._escape = b"\\" if text.endswith(b"\\") else b""
        text = text.removesuffix(b"\\").replace(b'\\"', b"")
        self._quotes += text.count(b'"')
        self._check("strings", self._quotes // 2, self._budget.values + self._budget.keys + 1)
        pieces = text.split(b'"')
        outside = b"".join(pieces[self._in_string :: 2])
        self._in_string ^= len(pieces) % 2 == 0
        self._values += sum(map(outside.count, (b",", b"[", b"{")))
        self._keys += outside.count(b":")
        self._check("values", self._values, self._budget.values)
        self._check("keys", self._keys, self._budget.keys)
        self._follow(outside)

    def _follow(self, outside: bytes) -> None:
        """Follow the brackets, of which the values' budget allows only so many to open, and none to close unopened."""
        for bracket in outside.translate(None, _NO_BRACKETS):
            self._depth += 1 if bracket in b"[{" else -1
            self._check("nested arrays and objects", self._depth, self._budget.depth)
            if self._depth < 0:
                raise BodyInvalidError("The request's body is no JSON: a bracket closes that none has opened.")

    def _check(self, what: str, count: int, limit: int) -> None:
        if count > limit:
            raise BodyInvalidError(f"The request's body has more than {limit:,} {what}. Send fewer.")


@dataclass(slots=True)
class UnfinishedBodies:
    """The memory of all bodies that have begun to arrive and are not complete.

    Attributes:
        limit_bytes: Maximum of all together.
        always_bytes: What each may have nevertheless, so that bodies held open stop no usual request.
        held_bytes: What they have now.
    """

    limit_bytes: int = 64 << 20
    always_bytes: int = 64 << 10
    held_bytes: int = 0


@dataclass(slots=True)
class ArrivingBody:
    """One body while it arrives. `close` it whatever became of it."""

    limit_bytes: int
    json: JsonCount
    all: UnfinishedBodies
    size_bytes: int = 0
    _held_bytes: int = field(default=0)

    def announce(self, size_bytes: int) -> None:
        """Check the size of the body.

        Raises:
            BodyTooLargeError: It exceeds the limit.
        """
        if size_bytes > self.limit_bytes:
            raise BodyTooLargeError(f"The body exceeds the limit of {self.limit_bytes:,} bytes. Send less text.")

    def add(self, part: bytes, *, more: bool) -> None:
        """Note the next part, and whether the body goes on.

        Raises:
            BodyTooLargeError: The body exceeds the limit.
            BodyInvalidError: It contains too much.
            QueueFullError: Too much arrives at once.
        """
        self.size_bytes += len(part)
        self.announce(self.size_bytes)
        self.json.add(part)
        if not more:
            self.close()
        elif part:
            self._hold(len(part) + _PART_BYTES)

    def close(self) -> None:
        """Count the body as complete, or as gone."""
        self.all.held_bytes -= self._held_bytes
        self._held_bytes = 0

    def _hold(self, size_bytes: int) -> None:
        self._held_bytes += size_bytes
        self.all.held_bytes += size_bytes
        if self._held_bytes > self.all.always_bytes and self.all.held_bytes > self.all.limit_bytes:
            raise QueueFullError("Too many large requests arrive at once. Try again in a second.")


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
        for known, user in self._users.items():
            if given is not None and hmac.compare_digest(given, known):
                return user
        if token is None and scope["path"] in self._open_paths:
            _check_no_web_page(scope["method"], headers)
            return ""
        raise UnauthorizedError(
            "The token is missing or wrong. Send `Authorization: Bearer TOKEN` with the host's token, or put /t/TOKEN "
            "before the path."
        )


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
