"""Limits on a client's connection: how many may come over TCP, how long a request and an unread reply may take."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from http import HTTPStatus

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from completion.errors import DraftlineError
from completion.host.errors import ConnectionsFullError, RequestSlowError, error_body

_REQUEST_UNFINISHED = (h11.IDLE, h11.SEND_BODY)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What one client may take from the others.

    Attributes:
        tcp_connections: Open TCP connections. A process has 256 file descriptors on macOS and 1,024 on Linux, and the
            Unix socket needs some of them.
        request_s: Seconds from a request's first byte to its last one; for the first request, from the connection.
        unread_s: Seconds that a reply may wait for a client that does not read.
    """

    tcp_connections: int = 128
    request_s: float = 30.0
    unread_s: float = 60.0


class LimitedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 with limits; a subclass sets `limits`."""

    limits = ConnectionLimits()
    _unfinished: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        """Refuse a TCP connection too many."""
        super().connection_made(transport)
        most = self.limits.tcp_connections
        if self.is_tcp and sum(each.is_tcp for each in self.connections if isinstance(each, LimitedProtocol)) > most:
            self._refuse(
                HTTPStatus.SERVICE_UNAVAILABLE,
                ConnectionsFullError(f"The host has {most} TCP connections, its limit. Close one, or try again later."),
            )
        else:
            self._watch_request()

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        super().data_received(data)
        self._watch_request()

    def pause_writing(self) -> None:
        """The client does not read."""
        super().pause_writing()
        self._unread = self.loop.call_later(self.limits.unread_s, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        _cancel(self._unread)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks."""
        super().connection_lost(exc)
        _cancel(self._unfinished)
        _cancel(self._unread)

    @property
    def is_tcp(self) -> bool:
        """Whether the client came over TCP, not the Unix socket."""
        return self.server is not None and self.server[1] is not None

    def _watch_request(self) -> None:
        """Run one clock from a request's first byte to its last."""
        if self.conn.their_state not in _REQUEST_UNFINISHED or self.transport.is_closing():
            _cancel(self._unfinished)
            self._unfinished = None
        elif self._unfinished is None:
            self._unfinished = self.loop.call_later(self.limits.request_s, self._end_slow_request)

    def _end_slow_request(self) -> None:
        error = RequestSlowError(f"The request was not complete after {self.limits.request_s:g} s. Send it again.")
        self._refuse(HTTPStatus.REQUEST_TIMEOUT, error)

    def _refuse(self, status: HTTPStatus, error: DraftlineError) -> None:
        """Close the connection, with a reply if none has begun."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = json.dumps(error_body(error)).encode()
            head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n"
            head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            self.transport.write(head.encode() + body)
        self.transport.close()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
