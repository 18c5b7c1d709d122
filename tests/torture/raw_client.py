"""A bare language client: it starts the real server and speaks JSON-RPC over its pipes, one message or many at once."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import IO, Any, Self

Message = dict[str, Any]

SERVER = (sys.executable, "-m", "lsp_server", "--stdio")
_CHUNK_BYTES = 1 << 16


class LanguageClient:
    """One server process and its pipes; used as a context, it ends the server.

    Attributes:
        replies: Replies that were read and not taken yet, by id.
        repeated: Ids that were answered more than once.
        notifications: What the server said by itself since this list was last emptied.
    """

    def __init__(
        self, environment: Mapping[str, str], command: Sequence[str] = SERVER, stderr: int | IO[bytes] | None = None
    ) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if stderr is None else stderr,
            env={**os.environ, **environment},
        )
        self.replies: dict[int | str, Message] = {}
        self.repeated: list[int | str] = []
        self.notifications: list[Message] = []
        self._answered: set[int | str] = set()
        self._last_id = 0
        self._unread = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self, timeout_s: float = 10) -> bool:
        """Close the server's input and wait for its end; whether it ended by itself in this time."""
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):  # it ended first
                self.process.stdin.close()  # the server ends with its client
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return False
        finally:
            if self.process.stdout is not None:
                self.process.stdout.close()
        return True

    def initialize(self, **params: Any) -> Message:
        """Send `initialize` and wait for its result."""
        result: Message = self.request(
            "initialize", {"processId": os.getpid(), "rootUri": None, "capabilities": {}, **params}
        )
        return result

    def request(self, method: str, params: Message | None, timeout_s: float | None = None) -> Any:
        """Send a request and wait for its result; the server's own requests are answered with null meanwhile."""
        return self.reply(self.ask(method, params), timeout_s)["result"]

    def ask(self, method: str, params: Message | None) -> int:
        """Send a request without waiting for the reply; gives its id."""
        self._last_id += 1
        self._send({"id": self._last_id, "method": method, "params": params})
        return self._last_id

    def reply(self, id_: int | str, timeout_s: float | None = None) -> Message:
        """Read until the reply with this id.

        Raises:
            TimeoutError: It did not come in time.
            EOFError: The server ended.
        """
        deadline = _deadline(timeout_s)
        while id_ not in self.replies:
            message = self._read_until(deadline)
            if "method" in message:
                self.notifications.append(message)
        return self.replies.pop(id_)

    def notify(self, method: str, params: Message) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    def wait_for_status(self, kind: str, timeout_s: float | None = None) -> Message:
        """Read until the server's status is of this kind.

        Raises:
            RuntimeError: The engine met an error first.
            TimeoutError: It did not come in time.
        """
        deadline = _deadline(timeout_s)
        while True:
            message = self._read_until(deadline)
            params = message.get("params") or {}
            if message.get("method") == "draftline/status" and params["kind"] == kind:
                return dict(params)
            if message.get("method") == "draftline/status" and params["kind"] == "error":
                raise RuntimeError(params["message"])

    def read(self, timeout_s: float | None = None) -> Message:
        """The next message; a request of the server is answered with null first.

        Raises:
            TimeoutError: None came in time.
            EOFError: The server ended.
        """
        return self._read_until(_deadline(timeout_s))

    def send_bytes(self, data: bytes) -> None:
        """Send raw bytes, headers included.

        Raises:
            BrokenPipeError: The server ended.
        """
        if self.process.stdin is not None:
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def _send(self, message: Message) -> None:
        self.send_bytes(framed(json.dumps({"jsonrpc": "2.0", **message}).encode()))

    def _read_until(self, deadline: float) -> Message:
        while (body := self._take_body()) is None:
            self._fill(deadline)
        message: Message = json.loads(body)
        if "method" in message and "id" in message:
            self._send({"id": message["id"], "result": None})
        elif "id" in message and message["id"] is not None:
            self._note_reply(message)
        return message

    def _note_reply(self, message: Message) -> None:
        if message["id"] in self._answered:
            self.repeated.append(message["id"])
        self._answered.add(message["id"])
        self.replies[message["id"]] = message

    def _take_body(self) -> bytes | None:
        """The next message's body if all of it was read."""
        end = self._unread.find(b"\r\n\r\n")
        if end < 0:
            return None
        lines = (line.partition(b":") for line in self._unread[:end].split(b"\r\n"))
        length = next(int(value) for name, _, value in lines if name.lower() == b"content-length")
        if len(self._unread) < end + 4 + length:
            return None
        body = bytes(self._unread[end + 4 : end + 4 + length])
        del self._unread[: end + 4 + length]
        return body

    def _fill(self, deadline: float) -> None:
        if self.process.stdout is None:
            raise EOFError("The language server has no output.")
        descriptor = self.process.stdout.fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        wait_ms = None if deadline == float("inf") else max(0.0, 1000 * (deadline - time.monotonic()))
        if not poll.poll(wait_ms):
            raise TimeoutError("The language server said nothing in time.")
        data = os.read(descriptor, _CHUNK_BYTES)
        if not data:
            raise EOFError("The language server ended.")
        self._unread += data


def framed(body: bytes) -> bytes:
    """A message's body with its header."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def _deadline(timeout_s: float | None) -> float:
    return float("inf") if timeout_s is None else time.monotonic() + timeout_s
