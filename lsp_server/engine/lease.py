"""The lease of an engine host: while a client holds it, the host stays alive and says its state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from completion.errors import DraftlineError
from lsp_server.engine.launcher import HostGoneError
from lsp_server.engine.status import EngineStatus

if TYPE_CHECKING:
    from lsp_server.engine.http import EngineConnection


class HostLease:
    """A lease over one connection, held until the host ends or `end` is called.

    Attributes:
        connection: The connection.
    """

    def __init__(
        self, connection: EngineConnection, on_status: Callable[[EngineStatus], None], text_goes_to: str
    ) -> None:
        """Start to ask for the lease.

        Args:
            connection: A connection to the host, which the lease closes at its end.
            on_status: Called with each state of the host, and after its end.
            text_goes_to: Address of a host on another machine, which the sentence of a ready host names; "" for a host
                on this one.
        """
        self.connection = connection
        self._on_status = on_status
        self._text_goes_to = text_goes_to
        self._granted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._following = asyncio.create_task(self._follow())

    @property
    def has_ended(self) -> bool:
        """Whether the host has ended, or refused the lease."""
        return self._following.done()

    async def is_granted(self, within_s: float) -> bool:
        """Return whether the host answers in time.

        Raises:
            DraftlineError: The host refuses the connection.
        """
        try:
            return await asyncio.wait_for(self._granted, within_s)
        except TimeoutError:
            return False

    async def end(self) -> None:
        """Release the lease, and close the connection."""
        self._following.cancel()
        await asyncio.gather(self._following, return_exceptions=True)
        await self.connection.close()

    async def _follow(self) -> None:
        """Tell each state of the host until it ends."""
        granted = self._granted
        try:
            async with aclosing(self.connection.states()) as states:
                async for status in states:
                    if status.state == "stopping":
                        continue  # the host ends next, and a request that comes now needs another one
                    self._on_status(self._with_address(status))
                    if not granted.done():
                        granted.set_result(True)
        except HostGoneError:
            if granted.done():
                sentence = "The engine ended. The next request starts a new one."
                if self._text_goes_to:
                    sentence = f"The engine at {self._text_goes_to} ended. The next request connects again."
                self._on_status(EngineStatus("gone", sentence=sentence))
        except DraftlineError as error:
            if not granted.done():
                granted.set_exception(error)
        finally:
            if not granted.done():
                granted.set_result(False)

    def _with_address(self, status: EngineStatus) -> EngineStatus:
        """Return the state of a ready host on another machine with a sentence on where the text goes."""
        if status.state != "ready" or not self._text_goes_to:
            return status
        return replace(status, sentence=f"{status.sentence} Your text goes to {self._text_goes_to}.")
