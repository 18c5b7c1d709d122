"""Prepares the engine's cache before it is needed: after a file was opened, a suggestion accepted, or a rest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from lsp_server.documents.documents import Document
from lsp_server.documents.text_lines import Place
from lsp_server.settings.table import Settings

SOON_S = 0.1
"""After an opening or an acceptance: long enough for the editor to say more, such as where its cursor stands."""


class Preparer:
    """Waits for the editor to rest, then has the cache made ready for the likely next request, once.

    A preparation costs nothing that anybody waits for: any request ends it within one chunk of the prompt.

    Args:
        settings: The settings of now.
        prepare: Makes the cache ready for a cursor at a place.
    """

    def __init__(self, settings: Callable[[], Settings], prepare: Callable[[Document, Place], Awaitable[None]]) -> None:
        self._settings = settings
        self._prepare = prepare
        self._where: tuple[Document, Place] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._running: set[asyncio.Task[None]] = set()

    def now(self, document: Document, place: Place) -> None:
        """The editor says that its cursor rests here: that is rest enough."""
        self._wait(document, place, 0)

    def rests(self, document: Document, place: Place) -> None:
        """Something happened here; prepare if nothing else does for a while."""
        self._wait(document, place, self._settings().prepare_ms / 1000)

    def soon(self, document: Document, place: Place) -> None:
        """The next request will most likely come from here."""
        self._wait(document, place, SOON_S)

    def soon_again(self) -> None:
        """The engine is new, or the text changed under it: prepare where the last thing happened."""
        if self._where is not None:
            self.soon(*self._where)

    def forget(self, document: Document) -> None:
        """A document was closed."""
        if self._where is not None and self._where[0] is document:
            self.stop()

    def stop(self) -> None:
        """Prepare nothing any more."""
        self._where = None
        self._cancel()

    def _wait(self, document: Document, place: Place, delay_s: float) -> None:
        self._cancel()
        self._where = document, place
        if self._settings().prepare_ms > 0:
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._start, document, place)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start(self, document: Document, place: Place) -> None:
        task = asyncio.ensure_future(self._prepare(document, place))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
