"""Downloads the model that the status offers, in the background, when the user says so by a command."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from completion.errors import DraftlineError
from lsp_server.status import LoadingProgress

if TYPE_CHECKING:
    from completion.model.choice import Choice, KnownModel
    from completion.progress import Progress

_log = logging.getLogger(__name__)


def fetch_apart(model: str, progress: Progress) -> None:
    """Download and convert a model in a process of its own.

    Raises:
        DraftlineError: It cannot be had.
    """
    from completion.model.store.apart import run_apart  # noqa: PLC0415 - few servers ever fetch a model

    run_apart("completion.model.loading:get_in_background", model, progress=progress)


class ModelDownload:
    """The downloads of one server.

    Args:
        new_progress: Creates a progress bar.
        say: Shows a sentence in the status.
        on_fetched: Called when a model is there.
        fetch: Fetches a model, on a thread of its own.
    """

    def __init__(
        self,
        new_progress: Callable[[], LoadingProgress],
        say: Callable[[str], None],
        on_fetched: Callable[[], None],
        fetch: Callable[[str, Progress], None] = fetch_apart,
    ) -> None:
        self._new_progress = new_progress
        self._say = say
        self._on_fetched = on_fetched
        self._fetch = fetch
        self._offered: KnownModel | None = None
        self._task: asyncio.Task[None] | None = None

    def note(self, choice: Choice) -> None:
        """Note the model that a choice offers, if it offers one."""
        self._offered = choice.offer

    def begin(self) -> str:
        """Begin to download the offered model, and return a sentence that says so, or why not."""
        if self._task is not None and not self._task.done():
            return "A model is being downloaded."
        if self._offered is None:
            return 'No better model is known for this machine, or `model` is not "auto".'
        self._task = asyncio.create_task(self._download(self._offered))
        return f"{self._offered.name} is being downloaded. It serves once it is there."

    async def _download(self, model: KnownModel) -> None:
        loop, bar = asyncio.get_running_loop(), self._new_progress()

        def progress(sentence: str, fraction: float) -> None:
            loop.call_soon_threadsafe(bar.report, 100 * fraction, sentence)

        try:
            await asyncio.to_thread(self._fetch, model.spec, progress)
            self._on_fetched()
        except DraftlineError as error:
            _log.warning("%s", error.logged)
            self._say(str(error))
        finally:
            bar.end("")
