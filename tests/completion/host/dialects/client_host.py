"""A host for other programs' clients, which runs in a thread of the tests, and the folder of these clients."""

import asyncio
import threading
from pathlib import Path

import httpx

from completion.engine import Engine
from completion.host.engine_protocol import LoadedEngine
from completion.host.process.sockets import TcpAddress, own_socket, tcp_socket
from completion.host.server import HostServer, HostSettings
from completion.model.loading import load_model
from tests.completion.host.dialects.test_replays import inserted, suggestions_in

TOKEN = "a-token-of-enough-length"
FETCHED = Path(__file__).resolve().parents[4] / ".cache" / "clients"
"""Folder of the clients that the tests have fetched."""


class ClientHost:
    """A host with the default model on TCP, in a thread."""

    def __init__(self, folder):
        loaded = load_model("default")
        self.engine = Engine(loaded)
        with tcp_socket(TcpAddress("127.0.0.1", 0, TOKEN)) as probe:
            self.address = TcpAddress("127.0.0.1", probe.getsockname()[1], TOKEN)
        self.url = f"http://127.0.0.1:{self.address.port}"
        self.http = httpx.Client(base_url=f"{self.url}/t/{TOKEN}", timeout=None)  # the tests' own limits hold
        self._listening = threading.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(loaded, folder),))
        self._thread.start()
        assert self._listening.wait(60)

    async def _serve(self, loaded, folder):
        engine = LoadedEngine(self.engine, loaded.name, loaded.device, loaded.model.shape.max_positions)
        own = own_socket(folder / "clients.sock")
        self._server = HostServer(HostSettings(idle_s=0, tcp=self.address), lambda _: engine, own.token)
        self._loop = asyncio.get_running_loop()
        self._listening.set()
        await self._server.run([own.listener, tcp_socket(self.address)])

    def text(self, prefix, suffix, **fields):
        """Return what `/v1/complete` gives with an empty cache, as a client inserts it."""
        self.http.post("/v1/close", json={"documents": [""]})
        while self.http.get("/health").json()["busy"]:
            pass
        reply = self.http.post("/v1/complete?wait=1", json={"prefix": prefix, "suffix": suffix, **fields})
        found = suggestions_in(reply)
        return inserted(found[0], suffix, ()) if found else ""

    def close(self):
        self._loop.call_soon_threadsafe(self._server.stop)
        self._thread.join(30)
