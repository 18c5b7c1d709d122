"""The engine host on one event loop: builds its parts, serves HTTP, shuts down in order."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from types import FrameType

import uvicorn

from completion.backend import GPU_MEMORY_SHARE, Backend
from completion.errors import DraftlineError, EngineUnavailableError
from completion.host.application import application, dialect
from completion.host.engine_protocol import EngineLoader, LoadedEngine
from completion.host.job import Job, Urgency
from completion.host.metrics import HostMetrics
from completion.host.process.address import DEFAULT_MODEL_NAME
from completion.host.process.clients import HostClients
from completion.host.process.connections import ConnectionLimits, LimitedProtocol, limited
from completion.host.process.log import log_loop_errors
from completion.host.process.sockets import BACKLOG, TcpAddress
from completion.host.services import Host
from completion.host.state import HostState, IdleWatch
from completion.host.worker import EngineWorker
from completion.remote.address import RemoteAddress
from completion.request import Closing

logger = logging.getLogger(__name__)

_STOP_TIMEOUT_S = 5.0
"""Maximum time for the model's thread to end, in seconds, while the host stops."""


@dataclass(frozen=True, slots=True)
class HostSettings:
    """Settings of one host.

    Attributes:
        model: "default", a local folder, a .gguf file or a hub id.
        backend: Implementation that runs the model; "auto" chooses one.
        threads: Number of CPU threads for the model; 0 lets the implementation choose.
        gpu_memory_share: Share of a GPU's memory that the model may take; 0 for no GPU.
        session_share: Share of the memory that is free once the model is loaded that cached documents may take. At
            least they take what they take for one user.
        idle_s: Seconds without a client after which the host exits; 0 means never.
        queue_limit: Maximum number of waiting requests of one kind from one user or client; of updates eightfold.
        tcp: Address to listen on in addition to the Unix socket.
        log_level: Level of draftline's own messages in the host's log.
        remote: Address of the model server that generates the tokens; its `url` is "" if the model runs here.
    """

    model: str = DEFAULT_MODEL_NAME
    backend: Backend = "auto"
    threads: int = 0
    gpu_memory_share: float = GPU_MEMORY_SHARE
    session_share: float = 0.0
    idle_s: float = 600.0
    queue_limit: int = 16
    body_limit_bytes: int = 4 << 20
    tcp: TcpAddress | None = None
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
    log_level: str = "INFO"
    remote: RemoteAddress = field(default_factory=RemoteAddress)


class HostServer:
    """One host on the running event loop.

    Args:
        load: Loads the engine; called on the model's thread.
        own_token: Token of the user's own programs over TCP; "" if they use a Unix socket.

    Attributes:
        loading_failed: Whether the model failed to load. The host then stops once its clients have read the error.
    """

    def __init__(self, settings: HostSettings, load: EngineLoader, own_token: str) -> None:
        self.loading_failed = False
        self._settings = settings
        self._state = HostState(settings.model)
        self._metrics = HostMetrics()
        self._worker = EngineWorker(load, self._metrics, queue_limit=settings.queue_limit)
        self._idle = IdleWatch(settings.idle_s, self.stop)
        self._stopped = asyncio.Event()
        tls = settings.tcp.tls if settings.tcp else None
        for_others = limited(settings.connections, tls)
        self._http = _QuietServer(self._configuration(own_token), self._stopped, for_others)

    def stop(self) -> None:
        """Begin to shut down. Call this on the event loop."""
        self._stopped.set()

    async def run(self, sockets: list[socket.socket]) -> None:
        """Serve until `stop`, a signal or idleness, then close the sockets."""
        log_loop_errors(asyncio.get_running_loop())
        self._start_worker()
        self._idle.start()
        logger.info("Listening, model %s, process %d", self._settings.model, os.getpid())
        ending = asyncio.create_task(self._end_streams())
        await self._http.serve(sockets)
        await ending

    async def _end_streams(self) -> None:
        """End leases and running requests when the host stops: they would keep their connections open."""
        await self._stopped.wait()
        self._state.stopping()
        await asyncio.to_thread(self._worker.stop, _STOP_TIMEOUT_S)

    def _start_worker(self) -> None:
        def on_loop(call: Callable[..., None]) -> Callable[..., None]:
            def unless_stopped(*arguments: object) -> None:
                if not self._stopped.is_set():
                    call(*arguments)

            def later(*arguments: object) -> None:
                with suppress(RuntimeError):  # the loop is closed where loading outlasts the host
                    loop.call_soon_threadsafe(unless_stopped, *arguments)

            return later

        loop, state = asyncio.get_running_loop(), self._state
        self._worker.start(
            on_loop(state.progress), on_loop(self._note_loaded), on_loop(self.stop), on_loop(state.trouble)
        )

    def _note_loaded(self, outcome: LoadedEngine | DraftlineError) -> None:
        if isinstance(outcome, DraftlineError):
            self.loading_failed = True
            self._state.failed(outcome.code, str(outcome))
            self._idle.end_soon()
            return
        logger.info("Ready: %s on %s", outcome.model_name, outcome.device)
        self._metrics.ready.set(1)
        self._metrics.held = outcome.engine.held
        self._state.ready(outcome.model_name, outcome.device, outcome.context_tokens, outcome.remark)
        asyncio.get_running_loop().run_in_executor(None, dialect, "draftline")  # so that no request waits for it

    def _forget(self, closing: Closing) -> None:
        with suppress(EngineUnavailableError):  # an engine that stops frees everything
            self._worker.submit(Job(Urgency.WORKSPACE, closing, deliver=lambda _: None))

    def _configuration(self, own_token: str) -> uvicorn.Config:
        settings = self._settings
        clients = HostClients(self._forget)
        host = Host(self._state, self._worker, clients, self._metrics, self._idle, started=time.monotonic())
        tcp = settings.tcp
        tokens = {own_token: ""} | ({tcp.token: "", **tcp.users} if tcp else {})

        return uvicorn.Config(
            application(
                host,
                tokens={token: user for token, user in tokens.items() if token},
                allow_local=tcp is not None and tcp.allow_local,
                body_limit_bytes=settings.body_limit_bytes,
            ),
            http=limited(settings.connections),
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            access_log=False,
            date_header=False,
            server_header=False,
            backlog=BACKLOG,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=1,
        )


class _QuietServer(uvicorn.Server):
    """A uvicorn server whose main loop waits for an event; uvicorn's own wakes up ten times a second.

    Its first socket is for the user's own programs, the others have a protocol of their own.
    """

    def __init__(self, config: uvicorn.Config, stopped: asyncio.Event, for_others: type[LimitedProtocol]) -> None:
        super().__init__(config)
        self._stopped = stopped
        self._for_others = for_others
        self._loop = asyncio.get_running_loop()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        own, *others = sockets or []
        await super().startup([own])
        servers, config = self.servers, self.config
        self.config = copy(config)
        self.config.http_protocol_class = self._for_others
        await super().startup(others)
        self.servers, self.config = servers + self.servers, config

    async def main_loop(self) -> None:
        await self._stopped.wait()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the signature is signal's
        self._loop.call_soon_threadsafe(self._stopped.set)
