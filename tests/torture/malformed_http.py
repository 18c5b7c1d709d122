"""Requests that no client should send to the host, readers that stop reading, and a host that answers with garbage."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from completion.errors import DraftlineError
from completion.host.process.address import Endpoint
from completion.request import CompletionRequest
from lsp_server.engine.http import EngineConnection
from tests.torture.large_bodies import half_body, large_body
from tests.torture.malformed_rpc import mutate
from tests.torture.tally import Round
from tests.torture.world import ANSWER_S, World

SECONDS = 10.0
BATCH = 60
LARGE_BODIES = 6
HALF_BODIES = 30
_BODIES = {
    "/v1/complete": {
        "prefix": "x = ",
        "suffix": "\n",
        "language": "python",
        "context": [{"path": "a", "text": "b"}],
        "max_tokens": 4,
        "sampling": {"temperature": 0.5, "seed": 1},
        "mode": "line",
    },
    "/v1/prepare": {"prefix": "x = ", "document": "d"},
    "/v1/workspace": {"workspace": "w", "changed": [{"path": "a.py", "text": "x", "open": True}], "removed": ["b"]},
    "/v1/events": {"type": "view", "completion_id": "c"},
    "/infill": {
        "input_prefix": "x",
        "input_suffix": "y",
        "n_predict": 3,
        "input_extra": [{"filename": "f", "text": "t"}],
    },
    "/v1/completions": {"prompt": "x", "suffix": "y", "max_tokens": 3, "stream": True, "n": 1},
    "/completion": {"prompt": "<|fim_prefix|>x<|fim_suffix|>y<|fim_middle|>", "n_predict": 3, "stop": ["z"]},
    "/v1/fim/completions": {"prompt": "x", "suffix": "y", "max_tokens": 3, "stop": "z"},
    "/api/generate": {"prompt": "x", "suffix": "y", "raw": False, "options": {"num_predict": 3, "stop": ["z"]}},
    "/api/show": {"model": "m"},
    "/v1/completions?tabby": {"language": "python", "segments": {"prefix": "x", "suffix": "y"}},
}
_LINES = (
    b"GET / HTTP/9.9",
    b"\0\0\0",
    b"POST /v1/complete",
    b"GET  /health HTTP/1.1",
    b"BREW /health HTTP/1.1",
    b"GET /" + b"a" * 70_000 + b" HTTP/1.1",
    b"GET /%00%ff HTTP/1.1",
    b"PRI * HTTP/2.0",
    b"\x16\x03\x01\x02\x00",
    b"",
)
_HEADERS = (
    b"Content-Length: -1",
    b"Content-Length: 99999999999999999999",
    b"Content-Length: abc",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: gzip, chunked",
    b"Host",
    b"X: " + b"b" * 100_000,
    b"Content-Length: 5\r\nContent-Length: 6",
    b"Authorization: Bearer \xff",
    b"Expect: 100-continue",
    b"Upgrade: websocket\r\nConnection: Upgrade",
    b"\r\nX: y",
)


class HttpAttacker:
    """Speaks to a host's socket with its own hands."""

    def __init__(self, path: Path, tally: Round, chance: random.Random) -> None:
        self.path = path
        self.tally = tally
        self.chance = chance

    def batch(self) -> None:
        """Broken requests, then a good one."""
        for _ in range(BATCH):
            self.tally.counts["malformed_messages"] += 1
            self.chance.choice((self._wrong_body, self._wrong_body, self._wrong_wire, self._gone_reader))()
        for _ in range(LARGE_BODIES):
            self.tally.counts["malformed_messages"] += 1
            self._large_body()
        with ExitStack() as held:
            for _ in range(HALF_BODIES):
                self._hold_half(held)
            self._speak(b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        status, body = self._speak(b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        if status != 200 or json.loads(body)["state"] != "ready":
            self.tally.found(f"after malformed requests /health says {status}")

    def _wrong_body(self) -> None:
        path = self.chance.choice(list(_BODIES))
        body = json.dumps(mutate(_BODIES[path], self.chance)).encode()
        cut = self.chance.randrange(len(body))
        body = self.chance.choice(
            (
                body,
                body,
                body,
                body,
                body[:cut],
                b"\xff" + body,
                b"[" * 50_000,
                b'{"a":' * 20_000,
                b"9" * 5000,
                b'{"max_tokens":' + b"9" * 5000 + b"}",
                b"",
            )
        )
        status, _ = self._speak(
            b"POST %b HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b"
            % (path.encode(), len(body), body)
        )
        if status is None or status >= 500:
            self.tally.found(f"{path} answers a malformed body with {status}")

    def _large_body(self) -> None:
        """Send a body that is large; a host that refuses it before it has arrived may close the connection."""
        path, body = large_body(self.chance)
        head = b"POST %b HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        status, _ = self._speak(head % (path.encode(), len(body)) + body)
        if status is not None and status >= 500:
            self.tally.found(f"{path} answers a large body with {status}")

    def _hold_half(self, held: ExitStack) -> None:
        """Send a large part of a body, and keep the connection open."""
        self.tally.counts["malformed_messages"] += 1
        connection = held.enter_context(self._connect())
        with suppress(OSError):  # the host refuses what exceeds its memory for unfinished bodies
            connection.sendall(half_body(self.chance))

    def _wrong_wire(self) -> None:
        line = self.chance.choice((*_LINES, b"POST /v1/complete HTTP/1.1", b"GET /health HTTP/1.1"))
        head = b"\r\n".join((line, b"Connection: close", self.chance.choice(_HEADERS)))
        status, _ = self._speak(head + b"\r\n\r\n" + b"zz\r\n{}\r\n", closes=True)
        if status is not None and status >= 500:
            self.tally.found(f"broken HTTP is answered with {status}")

    def _gone_reader(self) -> None:
        """Ask for events and leave in their midst, or without having sent all."""
        body = json.dumps({"prefix": "a", "document": str(self.chance.randrange(4))}).encode()
        head = b"POST /v1/complete HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body)
        data = (head + body)[: self.chance.choice((len(head) // 2, len(head), len(head) + 3, None))]
        with self._connect() as connection:
            connection.sendall(data)
            if self.chance.random() < 0.5:
                connection.settimeout(0.01)
                with suppress(OSError):
                    connection.recv(self.chance.choice((1, 40, 4000)))

    def _connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(ANSWER_S)
        connection.connect(str(self.path))
        return connection

    def _speak(self, data: bytes, *, closes: bool = False) -> tuple[int | None, bytes]:
        """Send, and read to the end: the status, and the body."""
        sent = time.monotonic()
        said = b""
        with self._connect() as connection:
            try:
                connection.sendall(data)
                if closes:
                    connection.shutdown(socket.SHUT_WR)
                while part := connection.recv(1 << 16):
                    said += part
            except TimeoutError:
                self.tally.found("the host neither answered nor closed the connection")
            except OSError:  # it closed first: a refusal, too
                pass
        self.tally.waited(sent)
        head, _, body = said.partition(b"\r\n\r\n")
        return (int(head.split(b" ")[1]) if head.startswith(b"HTTP/") else None), body


async def garbled_host(tally: Round, chance: random.Random, folder: Path) -> None:
    """What a host says may be garbage: the client's answer is one of our errors, and nothing else."""
    events = (
        b"data: {}\n\n",
        b"data: nonsense\n\n",
        b"event: error\ndata: {}\n\n",
        b"event: error\ndata: []\n\n",
        b"data: null\n\n",
        b'data: {"suggestions": 1, "done": true}\n\n',
        b"\xff\xfe\n\n",
        b": only a comment\n\n",
        b"data: " + b"[" * 5000 + b"\n\n",
        b'event: error\ndata: {"code": "internal", "message": "m"}\n\n',
        b"",
    )
    heads = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n",
        b"HTTP/1.1 500 No\r\nContent-Length: 3\r\n\r\n{}\n",
        b"garbage\r\n\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\n",
    )

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1 << 16)
        writer.write(chance.choice(heads) + chance.choice(events))
        writer.close()

    path = folder / "garbled.sock"
    server = await asyncio.start_unix_server(serve, path)
    connection = EngineConnection(Endpoint(socket_path=path))
    for _ in range(20):
        tally.counts["malformed_messages"] += 1
        for stream in (connection.complete(CompletionRequest("x")), connection.states()):
            try:
                async with asyncio.timeout(ANSWER_S):
                    async for _ in stream:
                        pass
            except DraftlineError:
                pass
            except Exception as error:  # noqa: BLE001 - any other is what is looked for
                tally.found(f"garbage of a host raises {type(error).__name__} in its client")
    await connection.close()
    server.close()
    await server.wait_closed()


def run(tally: Round, seconds: float = SECONDS) -> None:
    """One round: one host that a server uses, and that others abuse."""
    chance = random.Random(tally.seed)
    with World(tally, nonsense=True) as world:
        client = world.ready()
        attacker = HttpAttacker(next((world.folder / "run").glob("*.sock")), tally, chance)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            attacker.batch()
        asyncio.run(garbled_host(tally, chance, world.folder))
        world.leave(client)
