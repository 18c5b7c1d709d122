"""Sockets that are connected, and encrypted, while a cancel token is watched."""

from __future__ import annotations

import os
import selectors
import socket
import ssl
from contextlib import suppress
from functools import partial
from typing import Any

from completion.cancellation import CancelToken


def connected(
    host: str, port: int, context: ssl.SSLContext | None, timeout_s: float, cancel: CancelToken
) -> socket.socket:
    """Return a socket that is connected to the first address of a host that answers.

    A cancel is heard at once, but only after the host's name is resolved, which the system does. Without a context, the
    connection is not encrypted. `timeout_s` is for each address and each part of a handshake; the socket keeps it.

    Raises:
        CancelledError: `cancel` was called between two addresses.
        OSError: No address answers, or the handshake fails (`ssl.SSLError`), perhaps because of `cancel`.
    """
    plain = _first_that_answers(host, port, timeout_s, cancel)
    if context is None:
        return plain
    encrypted = context.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
    try:
        with cancel.calling(partial(end, encrypted)):
            encrypted.do_handshake()
    except OSError:
        encrypted.close()
        raise
    return encrypted


def end(connection: socket.socket) -> None:
    """End a connection that another thread uses; the method of an SSLSocket would pull its state from under that."""
    with suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


def _first_that_answers(host: str, port: int, timeout_s: float, cancel: CancelToken) -> socket.socket:
    failure = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        cancel.raise_if_cancelled()
        try:
            connection = socket.socket(family, kind, protocol)
        except OSError as error:  # for example, a system without IPv6
            failure = error
            continue
        try:
            _connect(connection, address, timeout_s, cancel)
        except OSError as error:
            connection.close()
            failure = error
        else:
            return connection
    raise failure


def _connect(connection: socket.socket, address: tuple[Any, ...], timeout_s: float, cancel: CancelToken) -> None:
    """Connect. Only a socket that has begun to can be ended, so waiting is a step of its own."""
    connection.settimeout(0)
    with suppress(BlockingIOError):
        connection.connect(address)
    with cancel.calling(partial(end, connection)), selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_WRITE)
        if not selector.select(timeout_s):
            raise TimeoutError("timed out")
    if code := connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
        raise OSError(code, os.strerror(code))
    connection.settimeout(timeout_s)
