"""An HTTP server that replays what a real model server once sent for the same request, byte for byte.

The replies lie in a zip, under a digest of the request without its salt. With a real server's address as `upstream`, an
unknown request is passed on and its reply recorded. A test can change how a reply is sent: cut short, delayed, or
broken off.
"""

from __future__ import annotations

import hashlib
import json
import socket
import ssl
import struct
import threading
import zipfile
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

RECORDED = Path(__file__).with_name("recorded.zip")
RECORDED_VLLM = Path(__file__).with_name("recorded_vllm.zip")
_WAIT_S = 60

Send = Callable[["Reply"], None]
"""Sends a reply in a way of its own."""


class Reply:
    """A recorded reply and the connection that waits for it.

    Attributes:
        recorded: The bytes that the real server sent.
        headers: Those of the request.
    """

    def __init__(self, recorded: bytes, handler: BaseHTTPRequestHandler, gone: threading.Event) -> None:
        self.recorded = recorded
        self.headers = handler.headers
        self._handler = handler
        self._gone = gone

    def send(self, data: bytes) -> None:
        """Send bytes now."""
        self._handler.wfile.write(data)
        self._handler.wfile.flush()

    def until_gone(self) -> None:
        """Wait until the client closes the connection."""
        self._handler.connection.settimeout(_WAIT_S)
        with suppress(ConnectionResetError):
            assert not self._handler.connection.recv(1)
        self._gone.set()

    def reset(self) -> None:
        """Break the connection as the system does it for a process that is killed."""
        self._handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._handler.connection.close()


class ReplayServer:
    """The server, on a port of its own.

    Args:
        upstream: Address of a real server to record; "" to replay.
        tls: Certificate and key to serve https with.
        recorded: Where the replies lie.

    Attributes:
        requests: Path and body of each request.
        sessions: Session that each request names.
        token: Token that requests must have.
        gone: Set when a client has closed a connection that `until_gone` waits on.
        sends: Ways to send the replies of a path; the default is to send all.
    """

    def __init__(self, upstream: str = "", tls: ssl.SSLContext | None = None, recorded: Path = RECORDED) -> None:
        self.requests: list[tuple[str, dict]] = []
        self.sessions: list[str] = []
        self.token = ""
        self.gone = threading.Event()
        self.sends: dict[str, Send] = {}
        self._upstream = upstream
        self._file = recorded
        self._recorded = _load(recorded)
        self._known = len(self._recorded)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(handler) -> None:
                self._answer(handler, None)

            def do_POST(handler) -> None:
                self._answer(handler, handler.rfile.read(int(handler.headers["Content-Length"])))

            def log_message(handler, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls is not None:
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def recorded(self, name: str) -> bytes:
        """Return a reply that was recorded under a name of its own."""
        return self._recorded[name]

    def record(self, name: str, reply: bytes) -> None:
        """Keep a reply under a name of its own."""
        self._recorded[name] = reply

    def close(self) -> None:
        """Stop listening, and write what was recorded."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        if len(self._recorded) > self._known:
            with zipfile.ZipFile(self._file, "w", zipfile.ZIP_DEFLATED) as file:
                for name, data in sorted(self._recorded.items()):
                    file.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)

    def _answer(self, handler: BaseHTTPRequestHandler, data: bytes | None) -> None:
        body = None if data is None else json.loads(data)
        self.requests.append((handler.path, body))
        self.sessions.append(handler.headers["X-Session-Id"])
        if self.token and handler.headers.get("Authorization") != f"Bearer {self.token}":
            name = "unauthorized"
        else:
            shown = {key: value for key, value in (body or {}).items() if key != "cache_salt"} or body
            name = hashlib.sha256(f"{handler.path} {json.dumps(shown, sort_keys=True)}".encode()).hexdigest()[:16]
        if name not in self._recorded and self._upstream:
            self._recorded[name] = fetched(self._upstream, handler.path, data, is_allowed=name != "unauthorized")
        recorded = self._recorded.get(name, b"HTTP/1.0 599 not recorded\r\n\r\n")
        handler.close_connection = True
        reply = Reply(recorded, handler, self.gone)
        self.sends.get(handler.path, lambda each: each.send(each.recorded))(reply)


def _load(recorded: Path) -> dict[str, bytes]:
    if not recorded.exists():
        return {}
    with zipfile.ZipFile(recorded) as file:
        return {name: file.read(name) for name in file.namelist()}


def fetched(
    upstream: str,
    path: str,
    data: bytes | None,
    *,
    is_allowed: bool = True,
    meanwhile: Callable[[], None] = lambda: None,
) -> bytes:
    """Return the bytes of a real server's reply, from its status line to the end; call `meanwhile` after each part."""
    parts = urlsplit(upstream)
    head = f"{'GET' if data is None else 'POST'} {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n"
    head += "Authorization: Bearer sesame\r\n" if is_allowed else ""
    head += f"Content-Length: {len(data or b'')}\r\nContent-Type: application/json\r\n\r\n"
    with socket.create_connection((parts.hostname, parts.port), _WAIT_S) as upstream_socket:
        upstream_socket.sendall(head.encode() + (data or b""))
        received = b""
        while part := upstream_socket.recv(1 << 16):
            received += part
            meanwhile()
    return received
