"""A bare language client for measurements: it starts the real server and speaks JSON-RPC over its pipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

Message = dict[str, Any]


class LanguageClient:
    """One server process and its pipes; used as a context, it ends the server."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "lsp_server", "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **environment},
        )
        self._last_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()  # the server ends with its client
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def initialize(self) -> None:
        """Send `initialize` and wait for its reply."""
        self.request("initialize", {"processId": os.getpid(), "rootUri": None, "capabilities": {}})

    def request(self, method: str, params: Message) -> Any:  # noqa: ANN401 - the protocol's results are of any shape
        """Send a request and wait for its reply; the server's own requests are answered with null meanwhile."""
        self._last_id += 1
        self._send({"id": self._last_id, "method": method, "params": params})
        while True:
            message = self.read()
            if message.get("id") == self._last_id and "method" not in message:
                return message["result"]

    def notify(self, method: str, params: Message) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    def wait_for_status(self, kind: str) -> Message:
        """Read until the server's status is of this kind.

        Raises:
            RuntimeError: The engine met an error first.
        """
        while True:
            message = self.read()
            params = message.get("params") or {}
            if message.get("method") == "draftline/status" and params["kind"] == kind:
                return dict(params)
            if message.get("method") == "draftline/status" and params["kind"] == "error":
                raise RuntimeError(params["message"])

    def read(self) -> Message:
        """The next message; a request of the server is answered with null first.

        Raises:
            EOFError: The server ended.
        """
        stream = self.process.stdout
        length = 0
        while stream is not None and (line := stream.readline()).strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        if stream is None or not length:
            raise EOFError("The language server ended.")
        message: Message = json.loads(stream.read(length))
        if "method" in message and "id" in message:
            self._send({"id": message["id"], "result": None})
        return message

    def _send(self, message: Message) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        if self.process.stdin is not None:
            self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            self.process.stdin.flush()
