"""Finds or starts the engine host, waits until it is ready, streams completions, and survives the host's death.

Neither the model's libraries nor httpx are imported here: `initialize` is answered before any of them is needed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from completion.errors import CancelledError, DraftlineError, EngineUnavailableError
from completion.host.process.address import check_private
from completion.request import CompletionEvent, CompletionRequest, WorkspaceUpdate
from lsp_server.engine.launcher import EngineOptions, HostGoneError, HostLauncher

if TYPE_CHECKING:
    from lsp_server.engine.http import EngineConnection

_START_TIMEOUT_S = 90.0  # only importing takes this long, on a machine under heavy load
_FIRST_LOOK_S = 0.03
_LONGEST_LOOK_S = 0.5
# A model that cannot be loaded is not tried again with every key that is pressed.
_FAILURE_KEPT_S = 15.0


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """What is known of the host.

    Attributes:
        state: "starting", "loading", "ready", "error", or "gone" after it ended.
        percent: How much of the loading is done, 0 to 100.
        sentence: What happens now, or what went wrong and what to do.
        code: The error's stable name in state "error".
    """

    state: str = "gone"
    percent: float = 0.0
    sentence: str = ""
    model: str = ""
    device: str = ""
    code: str = ""
    pid: int = 0


class EngineClient:
    """One client of one host: holds a lease while it is connected, so that the host lives as long as its clients."""

    def __init__(
        self,
        options: EngineOptions,
        on_status: Callable[[EngineStatus], None] = lambda _status: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make a client; nothing is started yet.

        Args:
            options: Which engine.
            on_status: Called on the event loop after every change, loading progress included.
            clock: Seconds, monotonic.
        """
        self.status = EngineStatus()
        self._options = options
        self._on_status = on_status
        self._clock = clock
        self._launcher = HostLauncher(options)
        self._connecting = asyncio.Lock()
        self._connection: EngineConnection | None = None
        self._lease: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._failure: tuple[float, DraftlineError] | None = None

    async def connect(self) -> EngineStatus:
        """Find or start the host and wait until its model is ready; cheap when it is.

        Raises:
            DraftlineError: The host cannot be started or reached, or the model cannot be loaded.
        """
        async with self._connecting:
            if self.status.state == "ready":
                return self.status
            if self._failure is not None and self._clock() < self._failure[0]:
                raise self._failure[1]
            self._failure = None
            try:
                await self._find_or_start()
                return await self._until_ready()
            except DraftlineError as error:
                if not isinstance(error, HostGoneError):
                    self._failure = (self._clock() + _FAILURE_KEPT_S, error)
                await self._disconnect()
                self._note(EngineStatus("error", sentence=str(error), code=error.code))
                raise

    async def complete(self, request: CompletionRequest) -> AsyncGenerator[CompletionEvent]:
        """Stream the events of a request; closing the iterator cancels it within one model step.

        When the host dies before anything was shown, a new one is asked once; after that the stream just ends.

        Raises:
            DraftlineError: No host can be had, or what the host answered instead.
        """
        shown = False
        for attempt in (1, 2):
            await self.connect()
            connection = self._live()
            try:
                async with aclosing(connection.complete(request)) as events:
                    async for event in events:
                        shown = shown or bool(event.suggestions)
                        yield event
            except (EngineUnavailableError, CancelledError):  # a host that is told to stop cancels what it works on
                await self._lost(connection)
                if shown:
                    return
                if attempt == 2:
                    raise
            else:
                return

    async def prepare(self, request: CompletionRequest) -> None:
        """Ask for a warm cache; does nothing while the host is not ready.

        Raises:
            DraftlineError: The host refuses it.
        """
        if self.status.state == "ready":
            await self._live().post("/v1/prepare", request)

    async def update_workspace(self, update: WorkspaceUpdate) -> None:
        """Tell what changed in a workspace; a host that was started anew must be told everything again.

        Raises:
            DraftlineError: No host can be had, or it refuses the update.
        """
        await self.connect()
        await self._live().post("/v1/workspace", update)

    async def health(self) -> dict[str, Any] | None:
        """The health of a host that runs, without starting one; None when there is none.

        Raises:
            PermissionsError: The socket is not the user's alone.
        """
        connection = self._connection or await self._open()
        try:
            return await connection.health()
        except EngineUnavailableError:
            return None
        finally:
            if connection is not self._connection:
                await connection.close()

    async def close(self) -> None:
        """Give the lease back."""
        await self._disconnect()

    def _live(self) -> EngineConnection:
        if self._connection is None:
            raise EngineUnavailableError("The engine's connection was closed.")
        return self._connection

    async def _find_or_start(self) -> None:
        """Get a lease, starting a host if there is none."""
        deadline = self._clock() + _START_TIMEOUT_S
        pause_s = _FIRST_LOOK_S
        while self._clock() < deadline:
            if await self._try_lease():
                return
            if self._options.url:
                raise EngineUnavailableError(
                    f"No engine answers at {self._options.url}. Start it there, or unset the url."
                )
            if pause_s == _FIRST_LOOK_S:
                self._note(EngineStatus("starting", sentence="Starting the engine."))
            self._launcher.ensure_running()
            await asyncio.sleep(pause_s)
            pause_s = min(_LONGEST_LOOK_S, 1.5 * pause_s)
        raise EngineUnavailableError(
            f"The engine did not answer within {_START_TIMEOUT_S:.0f} s. Its log: {self._launcher.address().log_path}"
        )

    async def _try_lease(self) -> bool:
        """Whether a host answers.

        Raises:
            DraftlineError: It answers, but refuses us.
        """
        await self._disconnect()
        self._connection = await self._open()
        found: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._lease = asyncio.create_task(self._follow(self._connection, found))
        return await found

    async def _follow(self, connection: EngineConnection, found: asyncio.Future[bool]) -> None:
        """Hold the lease and note the host's states until it ends."""
        try:
            async with aclosing(connection.states()) as states:
                async for health in states:
                    if health["state"] == "stopping":
                        continue  # its end follows; who comes now needs another host
                    self._note(_status_of(health))
                    if not found.done():
                        found.set_result(True)
        except HostGoneError:
            if found.done():
                self._note(EngineStatus("gone", sentence="The engine ended."))
        except DraftlineError as error:
            if not found.done():
                found.set_exception(error)
        finally:
            if not found.done():
                found.set_result(False)

    async def _until_ready(self) -> EngineStatus:
        while True:
            changed = self._changed
            if self.status.state == "ready":
                return self.status
            if self.status.state == "error":
                error = EngineUnavailableError(self.status.sentence)
                error.code = self.status.code
                raise error
            if self._lease is None or self._lease.done():
                raise HostGoneError("The engine ended while it was loading the model.")
            await changed.wait()

    async def _open(self) -> EngineConnection:
        if self._options.url:
            return await asyncio.to_thread(_connection, None, self._options)
        path = self._launcher.address().socket_path
        if path.exists():
            check_private(path)
        return await asyncio.to_thread(_connection, path, self._options)

    async def _lost(self, connection: EngineConnection) -> None:
        """Forget a connection that broke; another request may have noticed first and made a new one."""
        async with self._connecting:
            if connection is self._connection:
                await self._disconnect()

    async def _disconnect(self) -> None:
        lease, self._lease = self._lease, None
        connection, self._connection = self._connection, None
        if lease is not None:
            lease.cancel()
            await asyncio.gather(lease, return_exceptions=True)
        if connection is not None:
            await connection.close()
        self.status = EngineStatus()

    def _note(self, status: EngineStatus) -> None:
        self.status = status
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        self._on_status(status)


def _connection(socket_path: Path | None, options: EngineOptions) -> EngineConnection:
    from lsp_server.engine.http import EngineConnection  # noqa: PLC0415 - see the module's docstring

    return EngineConnection(socket_path, options.url, options.token)


def _status_of(health: Mapping[str, Any]) -> EngineStatus:
    return EngineStatus(
        state=health["state"],
        percent=health["percent"],
        sentence=health["sentence"],
        model=health["model"],
        device=health["device"],
        code=health["code"],
        pid=health["pid"],
    )
