"""Ends a local host that hangs, so that what waits for it fails at once and a new host can be started."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from completion.errors import DraftlineError
from lsp_server.engine.launcher import HostLauncher, HostSilentError

if TYPE_CHECKING:
    from lsp_server.engine.http import EngineConnection

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a client waits for a host.

    Attributes:
        start_s: From a host's start until it listens. Imports take this long on a machine under heavy load.
        quiet_s: From the beginning of a wait until the host is asked whether it is well, and between two such checks.
        answer_s: For the answer to `/health`. A host that gives none twice in a row is ended.
        end_s: From SIGTERM to SIGKILL.
    """

    start_s: float = 90.0
    quiet_s: float = 3.0
    answer_s: float = 10.0
    end_s: float = 3.0


PATIENCE = Patience()


class HostWatch:
    """Checks a host's health while something waits for it.

    The host's event loop answers, also while the model's thread computes a long prompt or loads the model: only a
    stopped process, or one that the system does not let run, stays silent.
    """

    def __init__(
        self, launcher: HostLauncher, patience: Patience, connect: Callable[[], Awaitable[EngineConnection]]
    ) -> None:
        """Watch the host of one address.

        Args:
            launcher: Knows the host's process.
            patience: The bounds.
            connect: Makes a fresh connection, which a broken one cannot keep from answering.
        """
        self._launcher = launcher
        self._patience = patience
        self._connect = connect

    @asynccontextmanager
    async def waiting(self, on_hung: Callable[[str], None]) -> AsyncIterator[None]:
        """Check the host from time to time while this block waits for it; `on_hung` is told before a host is ended."""
        watching = asyncio.create_task(self._end_if_hung(on_hung))
        try:
            yield
        finally:
            watching.cancel()

    async def _end_if_hung(self, on_hung: Callable[[str], None]) -> None:
        while True:
            await asyncio.sleep(self._patience.quiet_s)
            if await self._answers():
                continue
            # The second check is of the host that these processes are: another client may have replaced the first.
            suspects = await asyncio.to_thread(self._launcher.processes)
            if suspects and not await self._answers():
                pids = ", ".join(str(process.pid) for process in suspects)
                silent_s = 2 * self._patience.answer_s
                sentence = f"The engine (process {pids}) hangs: no answer in {silent_s:g} s. It is replaced."
                _log.warning(sentence)
                on_hung(sentence)
                await asyncio.to_thread(self._launcher.end, suspects, self._patience.end_s)

    async def _answers(self) -> bool:
        """Whether the host answers in time. One that is gone or refuses us does not hang: whoever waits sees that."""
        try:
            connection = await self._connect()
        except DraftlineError:
            return True
        try:
            await connection.health(self._patience.answer_s)
        except HostSilentError:
            return False
        except DraftlineError:
            return True
        finally:
            await connection.close()
        return True
