"""Limits on client connections: number of TCP connections, time for a request to arrive and a reply to be read."""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_REQUEST_UNFINISHED = (h11.IDLE, h11.SEND_BODY)
_MOST_CONNECTIONS = 1024
"""Maximum number of TCP connections where more files may be open: a hundred people with two windows have a thousand."""


def usual_connections() -> int:
    """Return half of the number of files that this process may have open: 512 on Linux, 128 on macOS by default."""
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 - Windows has none

        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if files != resource.RLIM_INFINITY:
            return min(files // 2, _MOST_CONNECTIONS)
    return _MOST_CONNECTIONS


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits that keep one client from blocking the others.

    Attributes:
        tcp_connections: Maximum number of open connections to one TCP port: each window has a lease and some more for a
            few seconds after a request. The Unix socket and files need the other file descriptors.
        request_s: Maximum seconds from a request's first byte to its last; for a connection's first request, from the
            connection on, with its handshake.
        unread_s: Maximum seconds that a reply waits for a client that does not read it.
    """

    tcp_connections: int = field(default_factory=usual_connections)
    request_s: float = 30.0
    unread_s: float = 60.0


class LimitedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 protocol with limits; a subclass sets `limits`, and `tls` for an encrypted port.

    The server of such a port is one without TLS. asyncio would report a connection only after its handshake, so one
    that sends nothing would count towards no limit.
    """

    limits = ConnectionLimits()
    tls: ssl.SSLContext | None = None
    _handshake: asyncio.Task[None] | None = None
    _early = b""  # what a client has sent right after its handshake
    _unfinished: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        """Accept a connection, or refuse it if it exceeds the limit of TCP connections; before TLS without a reply."""
        super().connection_made(transport)
        limit = self.limits.tcp_connections
        others = [each.tcp_port for each in self.connections if isinstance(each, LimitedProtocol)]
        if self.tcp_port is not None and others.count(self.tcp_port) > limit:
            message = f"The host has reached its limit of {limit} TCP connections. Close one, or try again later."
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "connections_full", message)
        else:
            self._watch_request()
            if self._awaits_tls:
                transport.pause_reading()  # so that nothing unencrypted is taken for a request
                self._handshake = self.loop.create_task(self._shake_hands(transport))

    def data_received(self, data: bytes) -> None:
        """Read a part of a request, and start or stop its timer."""
        if self._awaits_tls:
            self._early += data
            return
        super().data_received(data)
        self._watch_request()

    def pause_writing(self) -> None:
        """Start the timer of a reply that the client does not read."""
        super().pause_writing()
        self._unread = self.loop.call_later(self.limits.unread_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the timer: the client reads again."""
        super().resume_writing()
        _cancel(self._unread)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop both timers."""
        super().connection_lost(exc)
        _cancel(self._unfinished)
        _cancel(self._unread)

    @property
    def tcp_port(self) -> int | None:
        """The host's port that the client is connected to, None for the Unix socket."""
        return self.server[1] if self.server is not None else None

    @property
    def _awaits_tls(self) -> bool:
        """Whether what is written now would not be encrypted but must be."""
        return self.tls is not None and self.scheme == "http"

    async def _shake_hands(self, transport: asyncio.Transport) -> None:
        """Go on over TLS. The request's timer also ends a handshake, because asyncio's own limit is longer."""
        assert self.tls is not None  # noqa: S101 - see `_awaits_tls`
        encrypted = None
        with suppress(OSError):  # ssl.SSLError, too
            encrypted = await self.loop.start_tls(transport, self, self.tls, server_side=True)
        if encrypted is None:  # asyncio does not report that a connection is lost during its handshake
            self.connection_lost(None)
            return
        super().connection_made(encrypted)
        if self._early:
            self.data_received(self._early)

    def _watch_request(self) -> None:
        """Run one timer from a request's first byte to its last."""
        if self.conn.their_state not in _REQUEST_UNFINISHED or self.transport.is_closing():
            _cancel(self._unfinished)
            self._unfinished = None
        elif self._unfinished is None:
            self._unfinished = self.loop.call_later(self.limits.request_s, self._end_slow_request)

    def _end_slow_request(self) -> None:
        message = f"The request was incomplete after {self.limits.request_s:g} s. Send it again."
        self._refuse(HTTPStatus.REQUEST_TIMEOUT, "request_slow", message)

    def _refuse(self, status: HTTPStatus, code: str, message: str) -> None:
        """Close the connection. Send an error reply first unless a reply has already begun, or TLS has not."""
        if not self._awaits_tls and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = json.dumps({"code": code, "message": message}).encode()
            head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n"
            head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            self.transport.write(head.encode() + body)
        self.transport.close()


def limited(limits: ConnectionLimits, tls: ssl.SSLContext | None = None) -> type[LimitedProtocol]:
    """Return the protocol of a port with these limits, encrypted if there is a certificate."""

    class Protocol(LimitedProtocol):
        pass

    Protocol.limits, Protocol.tls = limits, tls
    return Protocol


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
