"""The model that serves with `model = "auto"`: what the machine has now, and the choice that follows from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from completion.free_memory import free_bytes
from lsp_server.settings.config import remote_address
from lsp_server.settings.table import Settings

if TYPE_CHECKING:
    from completion.model.choice import Choice

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

    Args:
        settings: The user's.
        now: What the machine has.
        serving: Name of the model that serves now, whose memory counts as free; "" for none.
        device: Where that runs; "" for where a model ran last.
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
