"""The session's engine client: follows the settings and reports the engine's state to the user."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from completion.edits import NextEditRequest, NextEdits
from completion.errors import DraftlineError
from completion.request import Closing, CompletionRequest, WorkspaceUpdate
from lsp_server.engine.auto_model import AUTO, Ask, choice_of, machine_now, saves_battery
from lsp_server.engine.client import EngineClient
from lsp_server.engine.launcher import EngineOptions, EngineStatus
from lsp_server.settings.table import DEFAULTS, Settings
from lsp_server.status import LoadingProgress, StatusKind, StatusReporter

if TYPE_CHECKING:
    from completion.model.choice import Choice

_log = logging.getLogger(__name__)

REVIEW_S = 60.0
"""Time between two looks at battery, load and memory, in seconds: that of the mean of the system's load."""


@dataclass(eq=False)
class EngineLink:
    """The session's connection to the engine.

    Attributes:
        on_ready: Called whenever an engine becomes ready, also after a restart.
        on_choice: Called with each choice of a model, if the settings leave it to draftline.
        saves_battery: Whether the user wants less work now.
    """

    status: StatusReporter
    new_progress: Callable[[], LoadingProgress]
    on_ready: Callable[[], None]
    on_choice: Callable[[Choice], None] = lambda _choice: None
    machine: Ask = machine_now
    saves_battery: bool = False
    _progress: LoadingProgress | None = None
    _settings: Settings = DEFAULTS
    _client: EngineClient | None = None
    _was_ready: bool = False
    _is_ready: bool = False
    _connecting: asyncio.Task[None] | None = None
    _reviewing: asyncio.Task[None] | None = None
    _timer: asyncio.TimerHandle | None = None
    _retiring: set[asyncio.Task[None]] = field(default_factory=set)
    _failed: set[EngineOptions] = field(default_factory=set)  # that could not take over
    _remark: str = ""

    @property
    def source(self) -> EngineClient | None:
        """The client, None until its engine was ready once. If the engine has ended, the next request restarts it."""
        return self._client if self._was_ready else None

    async def use(self, settings: Settings) -> None:
        """Connect to the engine that the settings name, in the background. Do nothing if it is the current one."""
        await self._end_review()
        was_auto, self._settings = self._settings.model == AUTO, settings
        options = await self._wanted()
        current = self._client.options if self._client is not None else None
        if current is not None and settings.model == AUTO and (was_auto or self._is_ready):
            options = replace(options, model=current.model)  # the review moves to another one
        if options != current:
            await self._close()
            self._client = self._new_client(options)
            self.wake()
        self.review()

    def review(self) -> None:
        """Look at the machine, now and each minute. Another model takes over between two requests, once it is ready."""
        if self._client is not None and (self._reviewing is None or self._reviewing.done()):
            self._reviewing = asyncio.create_task(self._review(self._client.options))

    async def _review(self, current: EngineOptions) -> None:
        if self._is_ready:
            remark, wanted = self._remark, await self._wanted()
            if wanted != current and wanted not in self._failed:
                await self._move(wanted)
            elif remark != self._remark:
                self.say_again()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(REVIEW_S, self.review)

    async def _end_review(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._reviewing is not None:
            self._reviewing.cancel()
            await asyncio.gather(self._reviewing, return_exceptions=True)

    async def _wanted(self) -> EngineOptions:
        """Return the engine that the settings name, or leave to what the machine has now."""
        settings, engine = self._settings, self._client.status if self._client else EngineStatus()
        now = await asyncio.to_thread(self.machine)
        device = engine.device.partition(" ")[0]
        choice = await asyncio.to_thread(choice_of, settings, now, engine.model, device)
        self.saves_battery = saves_battery(settings, now)
        self._remark = f"{choice.remark} {choice.offered} {choice.download}".strip() if choice else ""
        if choice is None:
            return EngineOptions.of_settings(settings, is_editor=True)
        if self._is_ready:
            self.on_choice(choice)
        return EngineOptions.of_settings(settings, is_editor=True, automatic=choice.model.spec)

    async def _move(self, options: EngineOptions) -> None:
        """Load another model while the one that serves goes on, then let it take over."""
        client = self._new_client(options)
        try:
            await client.connect()
        except DraftlineError as error:
            _log.warning("%s", error.logged)
            self._failed.add(options)
        finally:
            if client.status.state != "ready":  # the one that serves goes on
                await client.close()
        if client.status.state != "ready":
            return
        if (former := self._client) is not None:
            retiring = asyncio.create_task(former.retire())
            self._retiring.add(retiring)
            retiring.add_done_callback(self._retiring.discard)
        self._client, self._is_ready = client, False
        self._note(client.status)

    def _new_client(self, options: EngineOptions) -> EngineClient:
        def note(status: EngineStatus) -> None:
            if client is self._client:
                self._note(status)

        client = EngineClient(options, note)
        return client

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
        """Send changes of the workspace, or what was closed of it. The errors are those of the client."""
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
        await self._end_review()
        for task in self._retiring:
            task.cancel()
        await self._close()

    async def _close(self) -> None:
        client, connecting = self._client, self._connecting
        self._client = self._connecting = None
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
        sentence = f"{engine.sentence} {self._remark}".rstrip() if engine.state == "ready" else engine.sentence
        self.status.update(kind=kind, message=sentence, model=engine.model, device=engine.device)
        if engine.state in ("starting", "loading"):
            self._progress = self._progress or self.new_progress()
            self._progress.report(engine.percent, engine.sentence)
        elif self._progress is not None:
            self._progress.end(engine.sentence)
            self._progress = None
        became_ready, self._is_ready = engine.state == "ready" and not self._is_ready, engine.state == "ready"
        if became_ready:
            self._was_ready = True
            self.on_ready()
            self.review()
