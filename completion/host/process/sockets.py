"""The sockets the host listens on: 0600 for its user, and TCP only with a token."""

from __future__ import annotations

import ipaddress
import os
import secrets
import socket
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from completion.errors import ConfigurationError, EngineUnavailableError, StorageError
from completion.host.process.address import check_private
from completion.paths import writing_to

_SHORTEST_TOKEN = 16
BACKLOG = 128
"""Connections that wait to be accepted. asyncio accepts up to this many at once, before any limit is checked."""


@dataclass(frozen=True, slots=True)
class TcpAddress:
    """Where to listen on TCP, and the token that clients must show."""

    host: str
    port: int
    token: str


def unix_socket(path: Path) -> socket.socket:
    """Listen on a Unix socket that is its user's alone from its first moment.

    The caller holds the host's lock, so a file that is already there was left by a host that died.

    Raises:
        StorageError: The socket's file cannot be made.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    previous = os.umask(0o177)
    try:
        with writing_to(path.parent, "DRAFTLINE_RUNTIME_DIR"):
            path.unlink(missing_ok=True)
            listener.bind(os.fspath(path))
    finally:
        os.umask(previous)
    listener.listen(BACKLOG)
    return listener


def tcp_socket(address: TcpAddress) -> socket.socket:
    """Listen on TCP; the kernel watches for peers that vanish without a word.

    Raises:
        EngineUnavailableError: The address cannot be used, for example because another program listens there.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        listener = socket.create_server((address.host, address.port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise EngineUnavailableError(
            f"Cannot listen on {address.host}:{address.port} ({error.strerror}). Choose another with --tcp HOST:PORT."
        ) from error
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return listener


def tcp_address(text: str, token_file: Path | None, own_token_file: Path) -> TcpAddress:
    """Read HOST:PORT and find the token.

    Args:
        text: "127.0.0.1:8012", "[::1]:8012" or "0.0.0.0:8012".
        token_file: The user's choice; None makes a token of our own, on loopback only.
        own_token_file: Where that token is kept between runs.

    Raises:
        ConfigurationError: No such address, no token on an address that other machines reach, or too short a token.
        PermissionsError: Other users can read the token file.
        StorageError: The token file cannot be read.
    """
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ConfigurationError(f"--tcp {text} is no HOST:PORT. Give, for example, 127.0.0.1:8012.")
    if token_file is None:
        if not _is_loopback(host):
            raise ConfigurationError(
                f"--tcp {text} can be reached from other machines. Give a secret with --token-file FILE, "
                "or listen on 127.0.0.1."
            )
        token_file = _with_new_token(own_token_file)
    return TcpAddress(host, int(port), _read_token(token_file))


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _with_new_token(path: Path) -> Path:
    """Make the token's file, unless it is there; it appears whole, so that a host that is killed leaves none half."""
    if path.exists():
        return path
    with (
        writing_to(path.parent, "DRAFTLINE_STATE_DIR"),
        tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f"{path.name}-") as file,
    ):
        file.write(secrets.token_urlsafe(32) + "\n")
        file.flush()
        with suppress(FileExistsError):  # another host was faster
            os.link(file.name, path)
    return path


def _read_token(path: Path) -> str:
    try:
        check_private(path)
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"The token file {path} cannot be read ({type(error).__name__}).") from error
    if len(token) < _SHORTEST_TOKEN:
        raise ConfigurationError(f"The token in {path} has {len(token)} characters; {_SHORTEST_TOKEN} are the least.")
    return token
