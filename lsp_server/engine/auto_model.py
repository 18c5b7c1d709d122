"""The model that serves with `model = "auto"`: what the machine has now, the choice, and a larger one's download."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from completion.errors import CancelledError, DraftlineError
from completion.free_memory import free_bytes
from lsp_server.settings.config import remote_address
from lsp_server.settings.table import Settings

if TYPE_CHECKING:
    from completion.model.choice import Choice, KnownModel
    from completion.progress import Progress
    from lsp_server.status import LoadingProgress

_log = logging.getLogger(__name__)

AUTO = "auto"
"""Value of the setting `model` that leaves the choice to draftline."""


@dataclass(frozen=True, slots=True)
class Now:
    """What the machine has at one moment; the defaults are those of one that is idle and on mains.

    Attributes:
        memory_bytes: Free memory.
        load: Mean number of running processes of the last minute over the number of cores.
        on_battery: Whether it runs on battery.
    """

    memory_bytes: int
    load: float = 0.0
    on_battery: bool = False


Ask = Callable[[], Now]
"""Returns what the machine has; on a thread of its own, since it may take a tenth of a second."""


def machine_now() -> Now:
    """Return what this machine has now."""
    import psutil  # noqa: PLC0415 - `initialize` is answered without it

    battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    load = psutil.getloadavg()[0] / (psutil.cpu_count() or 1)
    return Now(free_bytes(), load, battery is not None and not battery.power_plugged)


def saves_battery(settings: Settings, now: Now) -> bool:
    """Return whether the user wants less work now."""
    return now.on_battery and settings.on_battery == "less"


def choice_of(settings: Settings, now: Now, serving: str = "", device: str = "") -> Choice | None:
    """Return which model serves and why; None if the settings name one, or a server on another machine.

    The memory of the model that is `serving` counts as free. It runs on `device`, "" for where a model ran last.
    """
    if settings.model != AUTO or remote_address(settings).url:
        return None
    from completion.model.choice import KNOWN, Machine, choose, is_installed, measured_here  # noqa: PLC0415 - 20 ms

    measured = measured_here()
    device = device or (measured[0].device if measured else "cpu")
    memory_bytes = now.memory_bytes + sum(model.weights for model in KNOWN if model.name == serving)
    if device != "cpu":
        from completion.model.gpu_memory import find_gpu  # noqa: PLC0415 - imports arrays

        memory_bytes = int(gpu.memory_bytes * settings.gpu_memory_share) if (gpu := find_gpu()) else memory_bytes
    machine = Machine(memory_bytes, device, settings.threads, now.load, saves_battery=saves_battery(settings, now))
    return choose(machine, measured, is_installed, settings.first_text_budget_ms, settings.backend, serving)


def fetch_apart(model: str, progress: Progress) -> None:
    """Download and convert a model in a process of its own.

    Raises:
        DraftlineError: It cannot be had.
    """
    from completion.model.store.apart import run_apart  # noqa: PLC0415 - few servers ever fetch a model

    run_apart("completion.model.loading:get_in_background", model, progress=progress)


@dataclass(slots=True)
class ModelDownload:
    """The downloads of one server. `say` shows a sentence in the status; `fetch` runs on a thread of its own."""

    new_progress: Callable[[], LoadingProgress]
    say: Callable[[str], None]
    on_fetched: Callable[[], None]
    fetch: Callable[[str, Progress], None] = fetch_apart
    _offered: KnownModel | None = None
    _task: asyncio.Task[None] | None = None

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

    def close(self) -> None:
        """End the download at its next step, so that it does not keep the process alive."""
        if self._task is not None:
            self._task.cancel()

    async def _download(self, model: KnownModel) -> None:
        loop, bar = asyncio.get_running_loop(), self.new_progress()

        def progress(sentence: str, fraction: float) -> None:
            if self._task is not None and self._task.cancelling():
                raise CancelledError("The client has left.")
            loop.call_soon_threadsafe(bar.report, 100 * fraction, sentence)

        try:
            await asyncio.to_thread(self.fetch, model.spec, progress)
            self.on_fetched()
        except DraftlineError as error:
            _log.warning("%s", error.logged)
            self.say(str(error))
        finally:
            bar.end("")
