"""The session's engine client: follows the settings and reports the engine's state to the user."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from completion.edits import NextEditRequest, NextEdits
from completion.errors import DraftlineError
from completion.request import Closing, CompletionRequest, WorkspaceUpdate
from lsp_server.engine.client import EngineClient
from lsp_server.engine.launcher import EngineOptions
from lsp_server.engine.status import EngineStatus
from lsp_server.settings.table import Settings
from lsp_server.status import LoadingProgress, StatusKind, StatusReporter

_log = logging.getLogger(__name__)


class EngineLink:
    """The session's connection to the engine.

    Args:
        status: Gets every change of the engine's state.
        new_progress: Creates a progress bar.
        on_ready: Called whenever an engine becomes ready, also after a restart.
    """

    def __init__(
        self, status: StatusReporter, new_progress: Callable[[], LoadingProgress], on_ready: Callable[[], None]
    ) -> None:
        self._status = status
        self._new_progress = new_progress
        self._on_ready = on_ready
        self._progress: LoadingProgress | None = None
        self._options: EngineOptions | None = None
        self._client: EngineClient | None = None
        self._was_ready = self._is_ready = False
        self._connecting: asyncio.Task[None] | None = None

    @property
    def source(self) -> EngineClient | None:
        """The client, None until its engine was ready once. If the engine has ended, the next request restarts it."""
        return self._client if self._was_ready else None

    async def use(self, settings: Settings) -> None:
        """Connect to the engine that the settings name, in the background. Do nothing if it is the current one."""
        options = EngineOptions.of_settings(settings, is_editor=True)
        if options != self._options:
            await self.close()
            self._options = options
            self._client = EngineClient(options, self._note)
            self.wake()

    def wake(self) -> None:
        """Start to connect, unless that is already going on."""
        if self._client is not None and (self._connecting is None or self._connecting.done()):
            self._connecting = asyncio.create_task(self._connect(self._client))

    async def prepare(self, request: CompletionRequest) -> None:
        """Bring the engine's cache up to date for a request that may follow. Errors are only logged."""
        try:
            if self.source is not None:
                await self.source.prepare(request)
        except DraftlineError as error:
            _log.info("The engine did not prepare its cache: %s", error.logged)

    async def next_edits(self, request: NextEditRequest) -> NextEdits:
        """Return what the user's last edits imply for the rest of a document. Errors are only logged."""
        try:
            return await self.source.next_edits(request) if self.source is not None else NextEdits()
        except DraftlineError as error:
            _log.info("The engine did not look for next edits: %s", error.logged)
            return NextEdits()

    async def send(self, message: WorkspaceUpdate | Closing) -> None:
        """Send changes of the workspace, or the documents and workspaces that were closed.

        Raises:
            DraftlineError: No engine is available, or it refuses the update.
        """
        if self._client is None:
            return
        if isinstance(message, Closing):
            await self._client.forget(message)
        else:
            await self._client.update_workspace(message)

    def say_again(self) -> None:
        """Show the engine's state in the place of another sentence in the status."""
        if self._client is not None and self._is_ready:
            self._note(self._client.status)

    async def close(self) -> None:
        """Release the engine, which exits on its own after some time without clients."""
        client, connecting = self._client, self._connecting
        self._client, self._connecting, self._options = None, None, None
        self._was_ready = self._is_ready = False
        if connecting is not None:
            connecting.cancel()
            await asyncio.gather(connecting, return_exceptions=True)
        if client is not None:
            await client.close()

    async def _connect(self, client: EngineClient) -> None:
        try:
            await client.connect()
        except DraftlineError as error:
            _log.warning("%s", error.logged)

    def _note(self, engine: EngineStatus) -> None:
        kinds = {"ready": StatusKind.READY, "error": StatusKind.ERROR}
        kind = kinds.get(engine.state, StatusKind.STARTING)
        if engine.state == "ready" and engine.code:  # its model server fails
            kind = StatusKind.ERROR
        self._status.update(kind=kind, message=engine.sentence, model=engine.model, device=engine.device)
        if engine.state in ("starting", "loading"):
            self._progress = self._progress or self._new_progress()
            self._progress.report(engine.percent, engine.sentence)
        elif self._progress is not None:
            self._progress.end(engine.sentence)
            self._progress = None
        became_ready, self._is_ready = engine.state == "ready" and not self._is_ready, engine.state == "ready"
        if became_ready:
            self._was_ready = True
            self._on_ready()
