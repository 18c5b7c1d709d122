"""Reports the server's state to the client: status notifications, and progress while the model loads."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from lsprotocol import types
from pygls.progress import Progress

from lsp_server.messages import STATUS


class StatusKind(StrEnum):
    """The state that an editor's status line shows."""

    STARTING = "starting"
    READY = "ready"
    BUSY = "busy"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Status:
    """The params of `draftline/status`.

    Attributes:
        quiet: A sentence on why there are no automatic suggestions where the user types; "" if there are.
    """

    kind: StatusKind = StatusKind.STARTING
    message: str = "Starting."
    model: str = ""
    device: str = ""
    quiet: str = ""


class StatusReporter:
    """Sends the status to the client whenever it changes."""

    def __init__(self, notify: Callable[[str, dict[str, Any]], None]) -> None:
        self._notify = notify
        self._sent: Status | None = None
        self.status = Status()

    def update(self, **changes: Any) -> None:  # noqa: ANN401 - fields of Status, checked by `replace`
        """Change fields of the status, and send it if it differs from the last one sent."""
        self.status = replace(self.status, **changes)
        if self.status != self._sent:
            self._sent = self.status
            self._notify(STATUS, asdict(self.status))


class LoadingProgress:
    """The progress bar while the model loads. It appears with the first report, if the client supports it."""

    def __init__(self, channel: Progress | None) -> None:
        self._channel = channel
        self._token = f"draftline/model/{secrets.token_hex(4)}"
        self._opening: asyncio.Task[None] | None = None
        self._begun = False
        self._percent = 0
        self._message = ""

    def report(self, percent: float, sentence: str) -> None:
        """Update the bar. The percentage never decreases."""
        self._percent = max(self._percent, round(min(100.0, percent)))
        self._message = sentence
        if self._channel is None:
            return
        if self._opening is None:
            self._opening = asyncio.create_task(self._open(self._channel))
        elif self._begun:
            report = types.WorkDoneProgressReport(message=sentence, percentage=self._percent)
            self._channel.report(self._token, report)

    def end(self, sentence: str) -> None:
        """Remove the bar."""
        if self._channel is not None and self._begun:
            self._begun = False
            self._channel.end(self._token, types.WorkDoneProgressEnd(message=sentence))
        elif self._opening is not None:
            self._opening.cancel()

    async def _open(self, channel: Progress) -> None:
        await channel.create_async(self._token)
        self._begun = True
        begin = types.WorkDoneProgressBegin(title="draftline", message=self._message, percentage=self._percent)
        channel.begin(self._token, begin)
