"""Ends a local host that hangs, so that the requests that wait for it fail at once and a new host can start."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from completion.errors import DraftlineError
from lsp_server.engine.launcher import HostGoneError, HostLauncher, HostSilentError, end

if TYPE_CHECKING:
    from lsp_server.engine.http import EngineConnection

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Patience:
    """Time limits of a client for its host, in seconds.

    Attributes:
        start_s: From a host's start until it listens. Imports take this long on a machine under heavy load.
        quiet_s: From the start of a wait to the first health check, and between two health checks.
        answer_s: For the answer to `/health`, and for a host that holds its lock to listen. A host that misses it
            twice in a row is ended.
        end_s: From SIGTERM to SIGKILL.
    """

    start_s: float = 90.0
    quiet_s: float = 3.0
    answer_s: float = 10.0
    end_s: float = 3.0


@dataclass(frozen=True, slots=True)
class HostWatch:
    """Checks a host's health while a request waits for it.

    The host's event loop answers even while the model's thread loads the model or computes a long prompt. Only a
    process that is stopped, or that the system does not schedule, fails to answer. A host takes its lock milliseconds
    before it listens, and holds it for seconds after.

    Attributes:
        connect: Opens a new connection for each check, so that a broken connection does not look like a hung host.
    """

    launcher: HostLauncher
    patience: Patience
    connect: Callable[[], Awaitable[EngineConnection]]

    @asynccontextmanager
    async def waiting(self, on_hung: Callable[[str], None]) -> AsyncIterator[None]:
        """Check the host regularly while the block waits for it. `on_hung` gets a message before a host is ended."""
        watching = asyncio.create_task(self._end_if_hung(on_hung))
        try:
            yield
        finally:
            watching.cancel()

    async def _end_if_hung(self, on_hung: Callable[[str], None]) -> None:
        while True:
            await asyncio.sleep(self.patience.quiet_s)
            if await self._answers():
                continue
            # Check again: another client may have replaced the hung host, and then these processes are its successor.
            suspects = await asyncio.to_thread(self.launcher.processes)
            if suspects and not await self._answers():
                pids = ", ".join(str(process.pid) for process in suspects)
                silent_s = 2 * self.patience.answer_s
                sentence = f"The engine (process {pids}) hangs: it did not answer for {silent_s:g} s. Restarting it."
                _log.warning(sentence)
                on_hung(sentence)
                await asyncio.to_thread(end, suspects, self.patience.end_s)

    async def _answers(self) -> bool:
        """Return whether the host does not hang. One that is gone does not; one that is stuck does."""
        end_s = asyncio.get_running_loop().time() + self.patience.answer_s
        while (answers := await self._answer()) is None:
            if not await asyncio.to_thread(self.launcher.is_stuck):
                return True
            if asyncio.get_running_loop().time() >= end_s:
                return False
            await asyncio.sleep(self.patience.quiet_s)
        return answers

    async def _answer(self) -> bool | None:
        """Return whether the host answers in time, None if nothing listens."""
        try:
            connection = await self.connect()
        except HostGoneError:
            return None
        except DraftlineError:
            return True
        try:
            await connection.health(self.patience.answer_s)
        except HostGoneError as error:
            return False if isinstance(error, HostSilentError) else None
        except DraftlineError:
            return True
        finally:
            await connection.close()
        return True
