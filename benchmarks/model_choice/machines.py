"""Described machines: what the default model measures there, and which models are installed."""

from __future__ import annotations

from dataclasses import dataclass

from completion.model.choice import KNOWN, Choice, KnownModel, Machine, Measured, choose
from lsp_server.settings.table import DEFAULTS

ROWS = 16
"""Largest number of rows of a described measurement."""


@dataclass(frozen=True, slots=True)
class Described:
    """A machine.

    Attributes:
        what: Its description, for the table.
        read_gb_s: Gigabytes of weights that it reads a second; 0 if it has measured nothing yet.
        pace_gop_s: Billions of multiplications and additions a second.
        memory_gb: Free memory of the machine, or of its GPU.
        installed: How many of the known models are installed, the smallest first.
        device: Where models run.
        load: Running processes over cores.
        on_battery: Whether it saves battery.
        lost_gpu: Whether what it measured was on a GPU that is gone.
    """

    what: str
    read_gb_s: float
    pace_gop_s: float
    memory_gb: float
    installed: int = 4
    device: str = "cpu"
    load: float = 0.0
    on_battery: bool = False
    lost_gpu: bool = False

    def measured(self) -> list[Measured]:
        """Return what the default model measures there."""
        small, form = KNOWN[0], "q4" if self.device == "cpu" and not self.lost_gpu else "plain"
        if not self.read_gb_s:
            return []
        read_ms = small.read_bytes(form) / self.read_gb_s / 1e6
        row_ms = 2 * small.weights / self.pace_gop_s / 1e6
        costs_ms = tuple(max(read_ms, row_ms) + row_ms * more for more in range(ROWS))
        return [Measured(small.name, form, "cuda" if self.lost_gpu else self.device, 0, costs_ms)]

    def choice(self) -> Choice:
        """Return which model serves there."""
        here = {model.name for model in KNOWN[: self.installed]}
        machine = Machine(round(self.memory_gb * 1e9), self.device, 0, self.load, saves_battery=self.on_battery)

        def is_installed(model: KnownModel) -> bool:
            return model.name in here

        return choose(machine, self.measured(), is_installed, DEFAULTS.first_text_budget_ms)


MACHINES = (
    Described("nothing measured yet: a first start", 0, 0, 16),
    Described("laptop of 2015: two cores, AVX2", 12, 120, 4, installed=2),
    Described("two cores of a server", 20, 350, 8, installed=1),
    Described("laptop with eight cores", 40, 900, 12, installed=2),
    Described("the same, on battery", 40, 900, 12, installed=2, on_battery=True),
    Described("the same, while a compiler runs", 40, 900, 12, installed=2, load=2.5),
    Described("the same, 1.2 GB free", 40, 900, 1.2, installed=2),
    Described("Apple M2 Pro", 150, 2_500, 16),
    Described("the same, default model alone", 150, 2_500, 16, installed=1),
    Described("workstation with sixteen cores", 80, 4_000, 64),
    Described("server with 64 cores", 250, 10_000, 256),
    Described("graphics card with 8 GB", 350, 30_000, 6.4, device="cuda"),
    Described("graphics card with 24 GB", 900, 80_000, 19, device="cuda"),
    Described("the same, after the card was lost", 900, 80_000, 32, lost_gpu=True),
)
"""What each of them gets is in docs/models.md."""
