"""A relay of connections to a server, which breaks them when a test says so, as the end of a server does."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from urllib.parse import urlsplit


class Relay:
    """The relay, on a port of its own.

    Args:
        url: Address of the server.

    Attributes:
        url: Its own address.
        breaks: Sizes of replies in bytes after which the next connections are broken.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname, parts.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"{parts.scheme}://127.0.0.1:{self._listener.getsockname()[1]}"
        self.breaks: list[int] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                size = self.breaks.pop(0) if self.breaks else None
                server = socket.create_connection(self._server)
                threading.Thread(target=self._carry, args=(client, server, None), daemon=True).start()
                threading.Thread(target=self._carry, args=(server, client, size), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, size: int | None) -> None:
        sent = 0
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data if size is None else data[: max(0, size - sent)])
                sent += len(data)
                if size is not None and sent >= size:
                    target.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    break
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
