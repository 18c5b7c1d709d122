"""Keeps a client connected to one engine host: finds or starts it, waits until it is ready, drops it when it is lost.

It imports no HTTP until it connects.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from completion.errors import DraftlineError, EngineUnavailableError
from lsp_server.engine.launcher import EngineOptions, EngineStatus, HostGoneError, HostLauncher, end
from lsp_server.engine.watch import HostWatch, Patience

if TYPE_CHECKING:
    from lsp_server.engine.http import EngineConnection

_FIRST_RETRY_S = 0.03
"""Seconds between the first two attempts to connect to a host that is starting; later intervals are longer."""
_MAX_RETRY_S = 0.5
_FAILURE_KEPT_S = 15.0
"""Seconds for which a failure is reported again without a new attempt, so that not every keystroke starts a host."""
_LOST = "The connection to the engine was lost. The next request connects again."
_MAX_DEATHS = 3
"""Number of hosts in a row that may be ended while they start, before that counts as a failure: memory may be short."""
_CLOSED = "The connection to the engine was closed. Send the request again."


@dataclass(eq=False)
class HostConnector:
    """The connection of one client to its host. It holds a lease while it is connected, which keeps the host alive.

    Attributes:
        on_status: Called on the event loop after every change of the status, including loading progress.
        clock: Monotonic clock, in seconds.
    """

    options: EngineOptions
    on_status: Callable[[EngineStatus], None] = lambda _status: None
    clock: Callable[[], float] = time.monotonic
    patience: Patience = field(default_factory=Patience)
    status: EngineStatus = field(default_factory=EngineStatus)
    _launcher: HostLauncher = field(init=False)
    _watch: HostWatch = field(init=False)
    _connecting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _connection: EngineConnection | None = None
    _following: asyncio.Task[None] | None = None  # holds the lease and notes what the host says
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _is_closed: bool = False
    _failure: tuple[float, DraftlineError] | None = None
    _deaths: int = 0  # hosts that ended in a row while they started

    def __post_init__(self) -> None:
        """Prepare to start and watch a local host."""
        self._launcher = HostLauncher(self.options)
        self._watch = HostWatch(self._launcher, self.patience, self._open)

    async def connect(self) -> EngineStatus:
        """Find or start the host, wait until its model is ready, and return its status. Do nothing if it is ready.

        Raises:
            DraftlineError: The host cannot be started or reached, or the model failed to load.
        """
        async with self._connecting:
            self._check_open()
            if self.status.state == "ready":
                return self.status
            if self._failure is not None and self.clock() < self._failure[0]:
                raise self._failure[1]
            self._failure = None
            try:
                async with self.watched():
                    await self._find_or_start()
                    status = await self._until_ready()
            except DraftlineError as error:
                self._deaths += isinstance(error, HostGoneError)
                if not isinstance(error, HostGoneError) or self._deaths >= _MAX_DEATHS:
                    self._failure = (self.clock() + _FAILURE_KEPT_S, error)
                await self._disconnect()
                self._note(EngineStatus("error", sentence=str(error), code=error.code))
                raise
            self._deaths = 0
            return status

    async def health(self, *, memory: bool = False) -> dict[str, Any] | None:
        """Return the health of a running host, None if none runs or it hangs, with `memory` where its memory is.

        Raises:
            PermissionsError: Another user owns the socket or can access it.
        """
        connection = leased = self._connection
        try:
            connection = connection or await self._open()
            return await connection.health(self.patience.answer_s, memory=memory)
        except EngineUnavailableError:
            return None
        finally:
            if connection is not None and connection is not leased:
                await connection.close()

    async def close(self) -> None:
        """Release the lease and close the connection for good. A `connect` in progress ends with an error."""
        self._is_closed = True
        await self._disconnect()

    def live(self) -> EngineConnection:
        """Return the connection.

        Raises:
            EngineUnavailableError: There is none any more.
        """
        if self._connection is None:
            raise EngineUnavailableError(_CLOSED)
        return self._connection

    def watched(self) -> AbstractAsyncContextManager[None]:
        """End the host if it hangs within the block. A host on another machine is never ended."""
        if self.options.remote.is_host:
            return nullcontext()
        return self._watch.waiting(lambda sentence: self._note(EngineStatus("starting", sentence=sentence)))

    async def drop(self, connection: EngineConnection) -> None:
        """Drop a broken connection, unless another request has already replaced it.

        This is noted, since the host may live: with the lease it has forgotten the workspace, which is sent again.
        """
        async with self._connecting:
            if connection is self._connection:
                was_ready = self.status.state == "ready"
                await self._disconnect()
                if was_ready:
                    self._note(EngineStatus("gone", sentence=_LOST))

    def _check_open(self) -> None:
        if self._is_closed:
            raise EngineUnavailableError(_CLOSED)

    async def _find_or_start(self) -> None:
        """Get a lease from the running host, or from a host that this starts."""
        deadline = self.clock() + self.patience.start_s
        retry_s, killed = _FIRST_RETRY_S, 0
        while (remaining_s := deadline - self.clock()) > 0:
            if await self._try_lease(remaining_s):
                return
            if self.options.remote.is_host:
                where = self.options.remote.shown()
                raise EngineUnavailableError(
                    f"No engine answers at {where}. Start one there: draftline serve --tcp HOST:PORT. Its url starts "
                    "with https if it has a --tls-certificate, else with http."
                )
            if retry_s == _FIRST_RETRY_S:
                self._note(EngineStatus("starting", sentence="Starting the engine."))
            killed += self._launcher.ensure_running()
            if killed == _MAX_DEATHS:
                raise EngineUnavailableError(
                    f"The engine was ended {killed} times before it answered, by the system or another program: memory "
                    f"may be short. Its output: {self._launcher.address().crash_path}"
                )
            await asyncio.sleep(retry_s)
            retry_s = min(_MAX_RETRY_S, 1.5 * retry_s)
        processes = await asyncio.to_thread(self._launcher.processes)
        await asyncio.to_thread(end, processes, self.patience.end_s)
        raise HostGoneError(
            f"The engine did not answer within {self.patience.start_s:g} s and was ended. A later request starts a "
            f"new one. Its log: {self._launcher.address().log_path}"
        )

    async def _try_lease(self, within_s: float) -> bool:
        """Connect to the host and return whether it answers in time. It raises what the host refuses with."""
        await self._disconnect()
        try:
            connection = await self._open()
        except HostGoneError:
            return False
        self._check_open()
        granted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._connection, self._following = connection, asyncio.create_task(self._follow(connection, granted))
        try:
            return await asyncio.wait_for(granted, within_s)
        except TimeoutError:
            return False

    async def _follow(self, connection: EngineConnection, granted: asyncio.Future[bool]) -> None:
        """Note each state of the host until it ends; `granted` gets whether it answers, or why it refuses the lease."""
        try:
            async with aclosing(connection.states()) as states:
                async for status in states:
                    if status.state != "stopping":  # the host ends next, and a request that comes now needs another one
                        self._note(self._with_address(status))
                        if not granted.done():
                            granted.set_result(True)
        except HostGoneError:
            if granted.done():
                sentence = "The engine ended. The next request starts a new one."
                if self.options.remote.is_host:
                    sentence = f"The engine at {self.options.remote.shown()} ended. The next request connects again."
                self._note(EngineStatus("gone", sentence=sentence))
        except DraftlineError as error:
            if not granted.done():
                granted.set_exception(error)
        finally:
            if not granted.done():
                granted.set_result(False)
            self._changed.set()  # no further state will

    def _with_address(self, status: EngineStatus) -> EngineStatus:
        """Return the state of a ready host on another machine with a sentence on where the text goes."""
        if status.state != "ready" or not self.options.remote.is_host:
            return status
        return replace(status, sentence=f"{status.sentence} Your text goes to {self.options.remote.shown()}.")

    async def _until_ready(self) -> EngineStatus:
        while True:
            self._check_open()
            changed = self._changed
            if self.status.state == "ready":
                return self.status
            if self.status.state == "error":
                error = EngineUnavailableError(self.status.sentence)
                error.code = self.status.code
                raise error
            if self._following is None or self._following.done():
                raise HostGoneError("The engine ended while it loaded the model. The next request starts a new one.")
            await changed.wait()

    async def _open(self) -> EngineConnection:
        path = None if self.options.remote.is_host else self._launcher.address().endpoint_path

        def connection() -> EngineConnection:
            from lsp_server.engine.http import connection_to  # noqa: PLC0415 - `initialize` is answered without it

            return connection_to(path, self.options)

        return await asyncio.to_thread(connection)

    async def _disconnect(self) -> None:
        connection, following = self._connection, self._following
        self._connection = self._following = None
        if connection is not None and following is not None:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await connection.close()
        self.status = EngineStatus()

    def _note(self, status: EngineStatus) -> None:
        self.status = status
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        if not self._is_closed:
            self.on_status(status)
