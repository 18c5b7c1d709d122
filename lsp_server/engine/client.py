"""Finds or starts the engine host, waits until it is ready, streams completions, and survives its death or hanging.

Neither the model's libraries nor httpx are imported here: `initialize` is answered before any of them is needed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from completion.errors import CancelledError, DraftlineError, EngineUnavailableError
from completion.host.process.address import check_private
from completion.request import Closing, CompletionEvent, CompletionRequest, WorkspaceUpdate
from lsp_server.engine.fatal_documents import FatalDocuments
from lsp_server.engine.launcher import EngineOptions, HostGoneError, HostLauncher
from lsp_server.engine.status import EngineStatus, status_of
from lsp_server.engine.watch import PATIENCE, HostWatch, Patience

if TYPE_CHECKING:
    from lsp_server.engine.http import EngineConnection

_FIRST_LOOK_S = 0.03
_LONGEST_LOOK_S = 0.5
# A model that cannot be loaded is not tried again with every key that is pressed.
_FAILURE_KEPT_S = 15.0


class EngineClient:
    """One client of one host: holds a lease while it is connected, so that the host lives as long as its clients."""

    def __init__(
        self,
        options: EngineOptions,
        on_status: Callable[[EngineStatus], None] = lambda _status: None,
        clock: Callable[[], float] = time.monotonic,
        patience: Patience = PATIENCE,
    ) -> None:
        """Make a client; nothing is started yet.

        Args:
            options: Which engine.
            on_status: Called on the event loop after every change, loading progress included.
            clock: Seconds, monotonic.
            patience: How long a host may stay silent before it is replaced.
        """
        self.status = EngineStatus()
        self._options = options
        self._on_status = on_status
        self._clock = clock
        self._patience = patience
        self._launcher = HostLauncher(options)
        self._watch = HostWatch(self._launcher, patience, self._open)
        self._connecting = asyncio.Lock()
        self._connection: EngineConnection | None = None
        self._lease: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._is_closed = False
        self._failure: tuple[float, DraftlineError] | None = None
        self._fatal = FatalDocuments(clock)

    async def connect(self) -> EngineStatus:
        """Find or start the host and wait until its model is ready; cheap when it is.

        Raises:
            DraftlineError: The host cannot be started or reached, or the model cannot be loaded.
        """
        async with self._connecting:
            self._check_open()
            if self.status.state == "ready":
                return self.status
            if self._failure is not None and self._clock() < self._failure[0]:
                raise self._failure[1]
            self._failure = None
            try:
                async with self._watched():
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

        When the host dies before anything was shown, a new one is asked once; after that the stream just ends. A
        document on which both die is not sent again.

        Raises:
            DocumentRefusedError: Hosts died on this document.
            DraftlineError: No host can be had, or what the host answered instead.
        """
        shown = False
        for attempt in (1, 2):
            self._fatal.check(request)
            await self.connect()
            connection = self._live()
            try:
                async with self._watched(), aclosing(connection.complete(request)) as events:
                    async for event in events:
                        shown = shown or bool(event.suggestions)
                        yield event
            except (EngineUnavailableError, CancelledError) as error:
                if isinstance(error, HostGoneError):  # a host that is told to stop only cancels what it works on
                    self._fatal.host_ended(request)
                await self._lost(connection)
                if shown:
                    return
                if attempt == 2:
                    raise
            else:
                self._fatal.answered(request)
                return

    async def prepare(self, request: CompletionRequest) -> None:
        """Ask for a warm cache; does nothing while the host is not ready.

        Raises:
            DocumentRefusedError: Hosts died on this document.
            DraftlineError: The host refuses it.
        """
        if self.status.state == "ready":
            self._fatal.check(request)
            async with self._watched():
                await self._live().post("/v1/prepare", request)

    async def update_workspace(self, update: WorkspaceUpdate) -> None:
        """Tell what changed in a workspace; a host that was started anew must be told everything again.

        Raises:
            DraftlineError: No host can be had, or it refuses the update.
        """
        await self.connect()
        async with self._watched():
            await self._live().post("/v1/workspace", update)

    async def forget(self, closing: Closing) -> None:
        """Tell what is no longer used; does nothing while the host is not ready, since it then holds nothing of ours.

        Raises:
            DraftlineError: The host refuses it.
        """
        if self.status.state == "ready":
            await self._live().post("/v1/close", closing)

    async def health(self) -> dict[str, Any] | None:
        """The health of a host that runs, without starting one; None when there is none or it hangs.

        Raises:
            PermissionsError: The socket is not the user's alone.
        """
        connection = self._connection or await self._open()
        try:
            return await connection.health(self._patience.answer_s)
        except EngineUnavailableError:
            return None
        finally:
            if connection is not self._connection:
                await connection.close()

    async def close(self) -> None:
        """Give the lease back, for good: what is still connecting ends with an error."""
        self._is_closed = True
        await self._disconnect()

    def _check_open(self) -> None:
        if self._is_closed:
            raise EngineUnavailableError("The connection to the engine was closed.")

    def _live(self) -> EngineConnection:
        if self._connection is None:
            raise EngineUnavailableError("The engine's connection was closed.")
        return self._connection

    async def _find_or_start(self) -> None:
        """Get a lease, starting a host if there is none."""
        deadline = self._clock() + self._patience.start_s
        pause_s = _FIRST_LOOK_S
        while (remaining_s := deadline - self._clock()) > 0:
            if await self._try_lease(remaining_s):
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
        processes = await asyncio.to_thread(self._launcher.processes)
        await asyncio.to_thread(self._launcher.end, processes, self._patience.end_s)
        raise EngineUnavailableError(
            f"The engine did not answer within {self._patience.start_s:g} s and was ended. A new one is started with "
            f"one of the next requests. Its log: {self._launcher.address().log_path}"
        )

    async def _try_lease(self, within_s: float) -> bool:
        """Whether a host answers in time.

        Raises:
            DraftlineError: It answers, but refuses us.
        """
        await self._disconnect()
        connection = await self._open()
        self._check_open()
        self._connection = connection
        found: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._lease = asyncio.create_task(self._follow(self._connection, found))
        try:
            return await asyncio.wait_for(found, within_s)
        except TimeoutError:
            return False

    async def _follow(self, connection: EngineConnection, found: asyncio.Future[bool]) -> None:
        """Hold the lease and note the host's states until it ends."""
        try:
            async with aclosing(connection.states()) as states:
                async for health in states:
                    if health["state"] == "stopping":
                        continue  # its end follows; who comes now needs another host
                    self._note(status_of(health))
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

    def _watched(self) -> AbstractAsyncContextManager[None]:
        """Replace the host if it hangs in this block; one on another machine cannot be."""
        return nullcontext() if self._options.url else self._watch.waiting(self._note_hung)

    def _note_hung(self, sentence: str) -> None:
        self._note(EngineStatus("starting", sentence=sentence))

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
        if not self._is_closed:
            self._on_status(status)


def _connection(socket_path: Path | None, options: EngineOptions) -> EngineConnection:
    from lsp_server.engine.http import EngineConnection  # noqa: PLC0415 - see the module's docstring

    return EngineConnection(socket_path, options.url, options.token, uuid4().hex if options.is_editor else "")
