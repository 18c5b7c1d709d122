"""The sockets that the host listens on: a Unix socket with mode 0600, or TCP with a token."""

from __future__ import annotations

import os
import secrets
import socket
import ssl
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from completion.errors import ConfigurationError, EngineUnavailableError, StorageError
from completion.host.process.address import LOOPBACK, keep_alive_options, write_endpoint
from completion.paths import check_private, writing_to
from completion.remote.address import is_loopback

TRANSPORT_VARIABLE = "DRAFTLINE_TRANSPORT"
"""Environment variable that makes a host listen on "tcp" although the system has Unix sockets."""
_MAX_SOCKET_PATH_BYTES = 103
"""Maximum length of a socket's path: sun_path has 104 bytes on macOS and 108 on Linux, including a final zero byte."""
_MIN_TOKEN_CHARACTERS = 16
BACKLOG = 128
"""Maximum number of connections waiting to be accepted. asyncio accepts that many at once before it checks a limit."""


@dataclass(frozen=True, slots=True)
class TcpAddress:
    """A TCP address to listen on.

    Attributes:
        token: The token that clients of the host's own user must send; "" if each user has one.
        allow_local: Whether the interfaces of other servers need no token; only on a loopback address.
        users: Names of other users by their tokens.
        tls: Certificate and key of the host; None to listen unencrypted.
    """

    host: str
    port: int
    token: str
    allow_local: bool = False
    users: Mapping[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None


@dataclass(frozen=True, slots=True)
class OwnSocket:
    """A socket that the user's own programs find by its path.

    Attributes:
        token: The token that they must send; "" for a Unix socket, which nobody else can open.
    """

    listener: socket.socket
    token: str


def own_socket(path: Path) -> OwnSocket:
    """Listen for the user's own programs: on a Unix socket, or on TCP where there is none or its path is too long.

    The caller holds the host's lock, so an existing file is left over from a host that was killed.

    Raises:
        StorageError: The socket or the file that names it cannot be created.
        EngineUnavailableError: The loopback address is not available.
    """
    with writing_to(path.parent, "DRAFTLINE_RUNTIME_DIR"):
        wants_unix = os.environ.get(TRANSPORT_VARIABLE) != "tcp" and len(os.fsencode(path)) <= _MAX_SOCKET_PATH_BYTES
        if sys.platform != "win32" and hasattr(socket, "AF_UNIX") and wants_unix:
            return OwnSocket(_unix_socket(path), "")
        token = secrets.token_urlsafe(32)
        listener = tcp_socket(TcpAddress(LOOPBACK, 0, token))
        write_endpoint(path, listener.getsockname()[1], token)
        return OwnSocket(listener, token)


if sys.platform != "win32":

    def _unix_socket(path: Path) -> socket.socket:
        """Listen on a Unix socket, which has mode 0600 from the moment it exists."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        previous = os.umask(0o177)
        try:
            path.unlink(missing_ok=True)
            listener.bind(os.fspath(path))
        finally:
            os.umask(previous)
        listener.listen(BACKLOG)
        return listener


def tcp_socket(address: TcpAddress) -> socket.socket:
    """Listen on TCP, with keep-alive probes that detect clients which vanished without closing.

    Raises:
        EngineUnavailableError: The address is not available, for example because another program listens on it.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        listener = socket.create_server((address.host, address.port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise EngineUnavailableError(
            f"Cannot listen on {address.host}:{address.port} ({error.strerror}). Choose another address with "
            "--tcp HOST:PORT."
        ) from error
    for option in keep_alive_options():
        listener.setsockopt(*option)
    return listener


def tcp_address(
    text: str,
    token_file: Path | None,
    own_token_file: Path,
    *,
    allow_local: bool = False,
    tls: ssl.SSLContext | None = None,
) -> TcpAddress:
    """Parse HOST:PORT and read the token, or one for each user, creating one if necessary.

    Args:
        text: An address such as "127.0.0.1:8012", "[::1]:8012" or "0.0.0.0:8012".
        token_file: The user's token file. None creates and uses `own_token_file`, on loopback only.
        own_token_file: File that keeps the created token between runs.
        allow_local: Whether the interfaces of other servers need no token.
        tls: Certificate and key, from `tls_context`.

    Raises:
        ConfigurationError: The address is malformed, other machines can reach it and there is no token file or no token
            needed, or the token file has a token that is too short or that two users share.
        PermissionsError: Other users can read the token file.
        StorageError: The token file cannot be read.
    """
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 0 < int(port) <= 65535:
        raise ConfigurationError(f"--tcp {text} is not of the form HOST:PORT. Example: --tcp 127.0.0.1:8012")
    if allow_local and not is_loopback(host):
        raise ConfigurationError(f"Other machines can reach --tcp {text}. --allow-local needs 127.0.0.1 or [::1].")
    if token_file is None:
        if not is_loopback(host):
            raise ConfigurationError(
                f"Other machines can reach --tcp {text}. Give a token with --token-file FILE, or listen on 127.0.0.1."
            )
        token_file = _with_new_token(own_token_file)
    users = _read_tokens(token_file)
    named = {token: user for token, user in users.items() if user}
    return TcpAddress(host, int(port), _nobodys(users), allow_local, named, tls)


def own_token(file: Path) -> str:
    """Return the token in a file of draftline's own, creating it if necessary.

    Raises:
        PermissionsError: Other users can read the file.
        StorageError: The file cannot be read.
    """
    return _nobodys(_read_tokens(_with_new_token(file)))


def _nobodys(users: Mapping[str, str]) -> str:
    """Return the token that is of no user by name, "" if there is none."""
    return next((token for token, user in users.items() if not user), "")


def tls_context(certificate: Path, key: Path | None) -> ssl.SSLContext:
    """Read the host's certificate with those of its authorities, and its key, which may be in the same file (PEM).

    Raises:
        ConfigurationError: They cannot be read or do not belong together.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    files = [certificate, *([key] if key else ())]
    read = [_changed_ns(file) for file in files]

    def renew(*_handshake: object) -> None:
        """Read the files again if they have changed; connections after this one get the new certificate."""
        nonlocal read
        now = [_changed_ns(file) for file in files]
        if now != read:
            with suppress(OSError):  # half of a pair is renewed: the next connection tries again
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
                context.load_cert_chain(certificate, key)
                read = now

    context.sni_callback = renew
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:  # ssl.SSLError, too
        where = certificate if key is None else f"{certificate} and {key}"
        raise ConfigurationError(
            f"The certificate and key in {where} cannot be used ({error.strerror or error}). "
            "Give PEM files that you can read, and the key that belongs to the certificate."
        ) from error
    return context


def _changed_ns(path: Path) -> int:
    """Return when a file was changed last, 0 without one."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _with_new_token(path: Path) -> Path:
    """Create the token file unless it exists. It appears with its whole content, even if the host is killed."""
    if path.exists():
        return path
    with (
        writing_to(path.parent, "DRAFTLINE_STATE_DIR"),
        tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f"{path.name}-") as file,
    ):
        file.write(secrets.token_urlsafe(32) + "\n")
        file.flush()
        with suppress(FileExistsError):  # another host has just created it
            os.link(file.name, path)
    return path


def _read_tokens(path: Path) -> dict[str, str]:
    """Return users' names by their tokens: from lines with a name and a token, or "" by the only token of a file."""
    try:
        check_private(path)
        text = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not ASCII"
        raise StorageError(
            f"The token file {path} cannot be read ({reason}). Give an ASCII file that you can read."
        ) from error
    lines = [line.split() for line in text.splitlines() if line.strip()] if len(text.split()) > 1 else [["", text]]
    if any(len(words) != 2 for words in lines):
        raise ConfigurationError(f"{path} is neither one token nor lines with a user's name and token.")
    tokens = {token: user for user, token in lines}
    if len(tokens) < len(lines):
        raise ConfigurationError(f"Two users have the same token in {path}. Give each user a token of their own.")
    shortest = min(map(len, tokens))
    if shortest < _MIN_TOKEN_CHARACTERS:
        raise ConfigurationError(
            f"The token in {path} has {shortest} characters. Use at least {_MIN_TOKEN_CHARACTERS}."
        )
    return tokens
