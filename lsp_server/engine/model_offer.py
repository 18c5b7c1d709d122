"""Offers a better model that is not installed, once, and fetches it in the background if the user accepts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from completion.errors import DraftlineError
from lsp_server.engine.consent import Ask
from lsp_server.settings.shared_file import Remembered
from lsp_server.status import LoadingProgress

if TYPE_CHECKING:
    from completion.model.choice import Choice, KnownModel
    from completion.progress import Progress

_log = logging.getLogger(__name__)

OFFERED_FILE = "offered-models.json"
"""Name of the file in the state folder that remembers which models were offered."""
FETCH, REFUSE = "Download", "No"
"""The answers that the user can choose from."""


def fetch_apart(model: str, progress: Progress) -> None:
    """Download and convert a model in a process of its own.

    Raises:
        DraftlineError: It cannot be had.
    """
    from completion.model.store.apart import run_apart  # noqa: PLC0415 - few servers ever fetch a model

    run_apart("completion.model.loading:get_in_background", model, progress=progress)


class ModelOffer:
    """The offers of one server.

    Args:
        path: File that remembers for all servers of this user what was offered; None if there is no folder for it.
        ask: Asks the user.
        new_progress: Creates a progress bar.
        say: Shows a sentence in the status.
        on_fetched: Called when a model is there.
        fetch: Fetches a model, on a thread of its own.
        may_ask: Says whether a question disturbs nobody. If it does, only the status and `draftline doctor` offer.
    """

    def __init__(
        self,
        path: Path | None,
        ask: Ask,
        new_progress: Callable[[], LoadingProgress],
        say: Callable[[str], None],
        on_fetched: Callable[[], None],
        fetch: Callable[[str, Progress], None] = fetch_apart,
        may_ask: Callable[[], bool] = lambda: True,
    ) -> None:
        self._offered = Remembered[frozenset[str]](path, frozenset, frozenset())
        self._ask = ask
        self._new_progress = new_progress
        self._say = say
        self._on_fetched = on_fetched
        self._fetch = fetch
        self._may_ask = may_ask
        self._task: asyncio.Task[None] | None = None

    def consider(self, choice: Choice) -> None:
        """Offer what a choice says, unless that was done before or is being done."""
        if choice.offer and self._may_ask() and self._task is None and choice.offer.name not in self._offered.get():
            self._task = asyncio.create_task(self._offer(choice.offer, choice.offered))

    def close(self) -> None:
        """Withdraw a question that is not answered. A download goes on with the next one."""
        if self._task is not None:
            self._task.cancel()

    async def _offer(self, model: KnownModel, sentence: str) -> None:
        size = f"{model.download_bytes / 1e9:.1f} GB"
        answer = await self._ask(f"draftline: {sentence} Download {size} in the background?", (FETCH, REFUSE))

        def with_it(offered: frozenset[str]) -> tuple[frozenset[str], object]:
            return offered | {model.name}, sorted(offered | {model.name})

        try:
            self._offered.change(with_it)
            if answer == FETCH:
                await self._fetched(model)
        except DraftlineError as error:
            _log.warning("%s", error.logged)
            self._say(str(error))
        finally:
            self._task = None

    async def _fetched(self, model: KnownModel) -> None:
        loop, bar = asyncio.get_running_loop(), self._new_progress()

        def progress(sentence: str, fraction: float) -> None:
            loop.call_soon_threadsafe(bar.report, 100 * fraction, sentence)

        try:
            await asyncio.to_thread(self._fetch, model.spec, progress)
        finally:
            bar.end("")
        self._on_fetched()
