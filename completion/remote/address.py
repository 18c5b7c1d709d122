"""The address of a server that computes for the user, from the settings. Light: the language server imports it."""

from __future__ import annotations

import ipaddress
import json
import os
import re
from dataclasses import asdict, dataclass
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from completion.errors import ConfigurationError
from completion.paths import expanded

Kind = Literal["llama-server", "vllm", "draftline"]
"""Kind of a server: a model server, or an engine host of draftline."""
EngineMode = Literal["remote", "local_first"]
"""Who completes where a server is configured: the server alone, or the local model first and the server after it."""

_MAX_TOKEN_BYTES = 16 << 10


@dataclass(frozen=True, slots=True)
class RemoteAddress:
    """A server that computes for the user, and how to reach it.

    Attributes:
        url: Its address, for example "https://gpu.example:8080"; "" if the model runs on this computer.
        token_file: File with the bearer token; "" for none.
        token_env: Environment variable with the bearer token; "" for none.
        ca_file: File with the certificates that sign the server's; "" for those of the system.
        plain_http: Whether text may go to another machine unencrypted.
        model: Folder or name of the model whose tokenizer a model server has; "" for the engine's own model.
    """

    url: str = ""
    kind: Kind = "llama-server"
    token_file: str = ""
    token_env: str = ""
    ca_file: str = ""
    plain_http: bool = False
    mode: EngineMode = "remote"
    model: str = ""

    @property
    def is_host(self) -> bool:
        """Whether an engine host on another machine takes the place of the local one."""
        return bool(self.url) and self.kind == "draftline" and self.mode == "remote"

    @property
    def is_second(self) -> bool:
        """Whether the local model answers first, and the server after it."""
        return bool(self.url) and self.mode == "local_first"

    def parts(self) -> SplitResult:
        """Return the parts of the address.

        Raises:
            ConfigurationError: It is malformed, or text would travel unencrypted although that is not allowed.
        """
        malformed = ConfigurationError(
            f"The engine's url {self.shown()!r} is not of the form https://HOST:PORT. A token belongs into a file."
        )
        try:
            parts = urlsplit(self.url)
            host, _ = parts.hostname or "", parts.port
            host.encode("idna")  # as the resolver does: its UnicodeError of a wrong name is a ValueError
        except ValueError:  # which may quote a part of a password
            raise malformed from None
        if parts.scheme not in {"http", "https"} or not host or not _is_plain(parts):
            raise malformed
        if parts.scheme == "http" and not self.plain_http and not is_loopback(host):
            raise ConfigurationError(
                f"The engine's url {self.url} would send your text unencrypted to another machine. Use https, or set "
                "plain_http to true for a network that you trust."
            )
        return parts

    def shown(self) -> str:
        """Return the address without a user name or password, for messages."""
        return re.sub(r"(?s)^(\w+://)?.*@", r"\1", self.url)

    def token(self) -> str:
        """Read the bearer token; "" if none is configured.

        Raises:
            ConfigurationError: The file or the variable cannot be read or is empty, or both are named.
        """
        if self.token_file and self.token_env:
            raise ConfigurationError("The engine has both token_file and token_env. Give one of them.")
        if self.token_env:
            return _usable(os.environ.get(self.token_env, ""), f"The environment variable {self.token_env}")
        if not self.token_file:
            return ""
        path = expanded(self.token_file)
        try:
            with path.open("rb") as file:
                text = file.read(_MAX_TOKEN_BYTES).decode("utf-8")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise ConfigurationError(
                f"The engine's token_file {path} cannot be read ({reason}). Give a file with the server's token."
            ) from error
        return _usable(text, f"The engine's token_file {path}")

    def arguments(self) -> list[str]:
        """Return the address as an option of a host's command line. It names the token's place, never the token."""
        return ["--remote", json.dumps(asdict(self))] if self.url else []


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is this computer's own, which no other machine can reach."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_plain(parts: SplitResult) -> bool:
    """Return whether an address has no user, query or fragment, and its path can be sent as it is."""
    can_be_sent = parts.path.isascii() and parts.path.isprintable() and " " not in parts.path
    return can_be_sent and not ("@" in parts.netloc + parts.path or parts.query or parts.fragment)


def _usable(text: str, where: str) -> str:
    token = text.strip()
    if not token or not token.isascii() or not token.isprintable():
        raise ConfigurationError(f"{where} has no token: one line of printable ASCII characters.")
    return token
