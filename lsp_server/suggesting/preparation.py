"""Prepares the engine's cache for the next request: after a file is opened, a suggestion is accepted, or a pause."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from lsp_server.documents.documents import Document
from lsp_server.documents.text_lines import Place
from lsp_server.settings.table import Settings

SOON_S = 0.1
"""Delay after an opened document or an acceptance, in seconds. The editor often reports its cursor within it."""


@dataclass(slots=True)
class Preparer:
    """Waits for a pause, then prepares the engine's cache for the likely next request, once.

    A preparation does not delay requests: a request stops it within one chunk of the prompt.
    """

    settings: Callable[[str], Settings]
    prepare: Callable[[Document, Place], Awaitable[None]]
    _where: tuple[Document, Place] | None = None
    _timer: asyncio.TimerHandle | None = None
    _running: set[asyncio.Task[None]] = field(default_factory=set)

    def now(self, document: Document, place: Place) -> None:
        """Prepare at once: the editor reports a moved cursor only after a pause."""
        self._wait(document, place, 0)

    def paused_at(self, document: Document, place: Place) -> None:
        """Prepare after a pause of `prepare_ms` from this event on, unless another event follows."""
        self._wait(document, place, self.settings(document.home).prepare_ms / 1000)

    def soon(self, document: Document, place: Place) -> None:
        """Prepare after `SOON_S`, because the next request is most likely at this position."""
        self._wait(document, place, SOON_S)

    def repeat_soon(self) -> None:
        """Prepare soon at the position of the last event, because the engine is new or a suggestion was inserted."""
        if self._where is not None:
            self.soon(*self._where)

    def forget(self, document: Document) -> None:
        """Stop if the last event was in this document, which was closed."""
        if self._where is not None and self._where[0] is document:
            self.stop()

    def stop(self) -> None:
        """Cancel the waiting preparation and forget the last event."""
        self._where = None
        self._cancel()

    def _wait(self, document: Document, place: Place, delay_s: float) -> None:
        self._cancel()
        self._where = document, place
        if self.settings(document.home).prepare_ms > 0:
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._start, document, place)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start(self, document: Document, place: Place) -> None:
        task = asyncio.ensure_future(self.prepare(document, place))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
