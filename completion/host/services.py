"""The services of a running host that the HTTP handlers use."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass, field
from typing import Any

import psutil
from starlette.requests import Request

from completion.edits import NextEditRequest
from completion.host.errors import require_ready
from completion.host.job import Job, Urgency
from completion.host.metrics import HostMetrics
from completion.host.open_texts import OpenTexts
from completion.host.process.clients import CLIENT_HEADER, Client, HostClients
from completion.host.process.idle import IdleWatch
from completion.host.state import HostPhase, HostState
from completion.host.stream import RequestStream
from completion.host.worker import EngineWorker
from completion.request import CompletionRequest
from completion.version import version


@dataclass(frozen=True, slots=True)
class Host:
    """The services of one host.

    Attributes:
        started: Time of the host's start on the monotonic clock, in seconds.
    """

    state: HostState
    worker: EngineWorker
    clients: HostClients
    metrics: HostMetrics
    idle: IdleWatch
    started: float
    open_texts: OpenTexts = field(default_factory=OpenTexts)

    def open_stream(self, request: CompletionRequest | NextEditRequest, client: Client) -> RequestStream[Any]:
        """Return the stream of a client's request that is not queued yet."""
        return RequestStream(self.state, self.worker, self.idle, self.clients.own(client, request))

    def prepare(self, request: CompletionRequest, client: Client) -> None:
        """Queue a client's preparation, whose end it does not wait for.

        Raises:
            EngineLoadingError: The model is not loaded yet.
            EngineUnavailableError: The model failed to load, or the host is stopping.
            QueueFullError: Too many preparations wait.
        """
        require_ready(self.state.status)
        self.worker.submit(Job(Urgency.PREPARE, self.clients.own(client, request), deliver=lambda _: None))

    def health(self) -> dict[str, Any]:
        """Return the host's state as JSON values for clients."""
        status = asdict(self.state.status)
        phase = status.pop("phase")
        return {
            **status,
            "status": "ok" if phase is HostPhase.READY else phase,
            "state": phase,
            "percent": round(status["percent"], 1),
            "pid": os.getpid(),
            "version": version(),
            "memory_bytes": psutil.Process().memory_info().rss,
            "uptime_s": round(time.monotonic() - self.started, 1),
            "busy": self.worker.busy,
        }


def sender(request: Request) -> Client:
    """Return who sent a request."""
    return Client(request.headers.get(CLIENT_HEADER, ""), request.scope["user"])
