"""HTTP to a model server: JSON and server-sent events, ended by a cancel token; each failure is one sentence.

Each request has a connection of its own, because the usual end of a stream is that its reader has enough and closes it.
The socket is known before it is connected, so a cancel can end it then, and while the server computes the prompt.
"""

from __future__ import annotations

import http.client
import json
import math
import secrets
import socket
import ssl
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from completion.cancellation import CancelToken
from completion.errors import CancelledError, ConfigurationError, RemoteInterruptedError, RemoteServerError
from completion.nesting import check_nesting
from completion.paths import expanded
from completion.remote.address import RemoteAddress
from completion.remote.sockets import connected, end

CONNECT_S = 3.0
"""Maximum time to connect, in seconds: a server that takes longer is too far away to complete code."""
SILENCE_S = 10.0
"""Maximum time between two parts of a reply, or two events of one, in seconds."""
REPLY_S = 60.0
"""Maximum time for a reply that is no stream, in seconds: the longest has a model's whole vocabulary."""

_PART_BYTES = 1 << 16
_MAX_REPLY_BYTES = 64 << 20
_MAX_LINE_BYTES = 1 << 20
_MAX_MESSAGE_CHARACTERS = 200
_OK = 200
_REFUSALS = (
    ({401, 403}, "refuses the token (HTTP {}). Correct the engine's token_file or token_env."),
    (
        range(300, 400),
        "redirects to another address (HTTP {}), and redirections are not followed. Correct the engine's url.",
    ),
    ({404}, "has no {path} (HTTP {}). Correct the engine's kind, or its url, to which this path is added."),
)
"""What is said of a server's refusal, by its HTTP status."""
_LOADING = 503
_FAILED = range(500, 600)
_SESSION = "X-Session-Id"


class Connection:
    """The way to one model server. Proxies of the environment are not used: text goes to the address or nowhere.

    All requests name one random session, by which a router before several servers sends them to the one that has cached
    their prompts.

    Raises:
        ConfigurationError: The settings cannot be used.
    """

    def __init__(self, address: RemoteAddress) -> None:
        parts = address.parts()
        self.shown = address.shown()
        usual_port = http.client.HTTPS_PORT if parts.scheme == "https" else http.client.HTTP_PORT
        # Without a port, http.client would take the end of an IPv6 address for one.
        self._host, self._port = parts.hostname or "", usual_port if parts.port is None else parts.port
        self._base = parts.path.rstrip("/")
        self._context = trusting(address.ca_file) if parts.scheme == "https" else None
        address.token()  # so that one that cannot be read is noticed at once
        self._address = address
        self._headers = {"Content-Type": "application/json", _SESSION: secrets.token_urlsafe(16)}

    def json(self, path: str, body: object, cancel: CancelToken) -> Any:  # noqa: ANN401 - the callers check it
        """Return the reply to a POST with a JSON body, or to a GET if the body is None.

        Raises:
            CancelledError: At once after `cancel`.
            RemoteServerError: The server cannot be reached, refuses the request, or its reply is no JSON.
        """
        with self._reply(path, body, cancel) as reply:
            text, started = bytearray(), time.monotonic()
            while len(text) < _MAX_REPLY_BYTES and (part := reply.read1(_PART_BYTES)):
                _end_of_patience(started, REPLY_S)
                text += part
            lacks_bytes = bool(reply.length)
        cancel.raise_if_cancelled()
        if lacks_bytes:
            raise self._halved()
        return self._decoded(text)

    def events(self, path: str, body: object, cancel: CancelToken) -> Generator[dict[str, Any]]:
        """Yield the server-sent events of a reply, each a JSON object. Closing the generator closes the connection.

        Raises:
            CancelledError: At once after `cancel`.
            RemoteServerError: As for `json`, or an event is an error, or the reply ends before its reader has enough.
        """
        with self._reply(path, body, cancel) as reply:
            rest, last = b"", time.monotonic()  # when the last event came: comments and parts of lines are none
            while len(rest) < _MAX_LINE_BYTES and (part := reply.read1(_PART_BYTES)):
                _end_of_patience(last, SILENCE_S)
                *lines, rest = (rest + part).split(b"\n")  # the last one of half a reply has no end
                for line in lines:
                    if (event := self._event(line)) is not None:
                        yield event
                        last = time.monotonic()
        cancel.raise_if_cancelled()
        raise self._halved()

    def _event(self, line: bytes) -> dict[str, Any] | None:
        """Return the event of a line, None for another line."""
        kind, _, data = line.partition(b":")
        if kind not in {b"data", b"error"} or data.strip() == b"[DONE]":
            return None
        event = self._decoded(data)
        if not isinstance(event, dict):
            raise self._unreadable()
        if kind == b"error" or "error" in event:
            raise RemoteInterruptedError(f"The server at {self.shown} failed: {_message(event)}")
        return event

    @contextmanager
    def _reply(self, path: str, body: object, cancel: CancelToken) -> Iterator[http.client.HTTPResponse]:
        cancel.raise_if_cancelled()
        headers = self._headers | self._authorization()
        connection = self._connected(cancel)
        try:
            with self._failures(cancel), cancel.calling(partial(end, connection.sock)):
                # Without blanks, all tokens of a usual vocabulary fit 1 MiB, which nginx takes by default.
                data = None if body is None else json.dumps(body, separators=(",", ":")).encode()
                method = "GET" if body is None else "POST"
                connection.request(method, self._base + path, data, headers)
                with self._begun(connection, cancel) as reply:
                    if reply.status != _OK:
                        raise self._refusal(reply, path)
                    yield reply
        finally:
            connection.close()

    def _begun(self, connection: http.client.HTTPConnection, cancel: CancelToken) -> http.client.HTTPResponse:
        """Return the reply to the request that was sent, once it begins."""
        try:
            return connection.getresponse()
        except ConnectionError as error:
            if self._context is None and not cancel.cancelled:
                raise self._halved("If it wants https, correct the engine's url.") from error
            raise

    def _authorization(self) -> dict[str, str]:
        """Return the header with the token. It is read for each request, because its user may replace it meanwhile.

        Raises:
            RemoteServerError: It cannot be read any more.
        """
        try:
            token = self._address.token()
        except ConfigurationError as error:
            raise RemoteServerError(str(error)) from error
        return {"Authorization": f"Bearer {token}"} if token else {}

    def _connected(self, cancel: CancelToken) -> http.client.HTTPConnection:
        if self._context is None:
            connection = http.client.HTTPConnection(self._host, self._port)
        else:
            connection = http.client.HTTPSConnection(self._host, self._port, context=self._context)
        try:
            connection.sock = connected(connection.host, connection.port, self._context, CONNECT_S, cancel)
        except ssl.SSLCertVerificationError as error:
            raise RemoteServerError(
                f"The certificate of {self.shown} is not trusted ({error.verify_message}). Name the file of its "
                "authority in the engine's ca_file."
            ) from error
        except OSError as error:  # ssl.SSLError and TimeoutError, too
            if cancel.cancelled:
                raise CancelledError("The request was cancelled.") from error
            kind = RemoteServerError if isinstance(error, TimeoutError) else RemoteInterruptedError
            raise kind(
                f"No server answers at {self.shown} ({error.strerror or error}). Start it, or correct the engine's url."
            ) from error
        connection.sock.settimeout(SILENCE_S)
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    @contextmanager
    def _failures(self, cancel: CancelToken) -> Iterator[None]:
        """Turn what breaks a reply into its sentence, or into `CancelledError` if a cancel has broken it."""
        try:
            yield
        except (OSError, http.client.HTTPException, ValueError) as error:
            if cancel.cancelled:
                raise CancelledError("The request was cancelled.") from error
            if isinstance(error, TimeoutError):
                raise RemoteServerError(
                    f"The server at {self.shown} was silent for {SILENCE_S:g} s. It may be overloaded. Try again."
                ) from error
            raise self._halved() from error

    def _refusal(self, reply: http.client.HTTPResponse, path: str) -> RemoteServerError:
        for statuses, sentence in _REFUSALS:
            if reply.status in statuses:
                return RemoteServerError(f"The server at {self.shown} {sentence.format(reply.status, path=path)}")
        try:
            said = _message(self._decoded(reply.read(_MAX_LINE_BYTES)))
        except RemoteServerError:
            said = "no explanation"
        if reply.status == _LOADING:
            return RemoteInterruptedError(f"The server at {self.shown} is not ready, try again in a minute: {said}")
        kind = RemoteInterruptedError if reply.status in _FAILED else RemoteServerError
        return kind(f"The server at {self.shown} refuses the request with HTTP {reply.status}: {said}")

    def _decoded(self, text: bytes | bytearray) -> Any:  # noqa: ANN401 - the callers check it
        """Return what a text says, whose numbers are finite."""
        try:
            check_nesting(text)
            return json.loads(text.decode("utf-8-sig"), parse_float=_finite, parse_constant=_finite)
        except ValueError as error:
            raise self._unreadable() from error

    def _unreadable(self) -> RemoteServerError:
        return RemoteServerError(f"The reply of {self.shown} cannot be read. Is it the kind of server in the settings?")

    def _halved(self, advice: str = "") -> RemoteInterruptedError:
        sentence = f"The server at {self.shown} ended in the middle of its reply. Try again."
        return RemoteInterruptedError(f"{sentence} {advice}".rstrip())


def trusting(ca_file: str) -> ssl.SSLContext:
    """Return a context that trusts the certificates of the system, or those of a file.

    Raises:
        ConfigurationError: The file has none, or cannot be read.
    """
    try:
        return ssl.create_default_context(cafile=expanded(ca_file) if ca_file else None)
    except OSError as error:  # ssl.SSLError, too
        reason = error.strerror or error
        raise ConfigurationError(
            f"The engine's ca_file {ca_file} cannot be read ({reason}). Give a file of certificates (PEM)."
        ) from error


def _finite(number: str) -> float:
    if not math.isfinite(value := float(number)):
        raise ValueError(f"{number} is no finite number")
    return value


def _end_of_patience(since_s: float, limit_s: float) -> None:
    """Raise a TimeoutError if a reply that sends something all the time has still not said anything."""
    if time.monotonic() - since_s > limit_s:
        raise TimeoutError


def _message(event: Any) -> str:  # noqa: ANN401 - untyped JSON
    """Return what a server says about an error, on one line and shortened."""
    error = event.get("error", event) if isinstance(event, dict) else event
    said = error.get("message", error) if isinstance(error, dict) else error
    words = " ".join(str(said).split())[:_MAX_MESSAGE_CHARACTERS]
    return words.encode("utf-8", "replace").decode()  # JSON can name lone surrogates
