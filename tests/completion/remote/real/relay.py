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
        dies_after: Size of a reply in bytes after which the server ends for every connection, until `revive`.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname, parts.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"{parts.scheme}://127.0.0.1:{self._listener.getsockname()[1]}"
        self.breaks: list[int] = []
        self.dies_after: int | None = None
        self._clients: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._is_dead = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()

    @property
    def is_dead(self) -> bool:
        """Whether the server has ended for its clients."""
        return self._is_dead.is_set()

    def die(self) -> None:
        """End all connections, and each new one."""
        with self._lock:
            self._is_dead.set()
            for client in self._clients:
                with suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)

    def revive(self) -> None:
        """Let the server answer again."""
        self.dies_after = None
        self._is_dead.clear()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                with self._lock:
                    if self._is_dead.is_set():
                        client.close()
                        continue
                    self._clients.add(client)
                size = self.breaks.pop(0) if self.breaks else None
                server = socket.create_connection(self._server)
                threading.Thread(target=self._send, args=(client, server), daemon=True).start()
                threading.Thread(target=self._answer, args=(server, client, size), daemon=True).start()

    def _send(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 16):
                server.sendall(data)
        _end(server)

    def _answer(self, server: socket.socket, client: socket.socket, size: int | None) -> None:
        sent = 0
        with suppress(OSError):
            while data := server.recv(1 << 16):
                client.sendall(data if size is None else data[: max(0, size - sent)])
                sent += len(data)
                if size is not None and sent >= size:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    break
                if self.dies_after is not None and sent >= self.dies_after:
                    self.die()
        with self._lock:
            self._clients.discard(client)
        _end(client)
        _end(server)


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
