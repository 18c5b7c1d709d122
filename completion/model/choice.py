"""Chooses the model that serves: a forecast of each known one's first text here, and the largest that is quick enough.

The forecast needs what this machine has measured for one of them. It is a roofline ("Roofline: An Insightful Visual
Performance Model for Multicore Architectures"): a pass reads all weights once, and multiplies each with every row.
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from completion.backend import Backend
from completion.model.store.converted_models import Source, is_complete
from completion.model.store.fetched_packages import fetched
from completion.model.store.packaged_models import DEFAULT_PACKAGE, LARGER_PACKAGE, PACKAGED_MODELS, all_parts_installed
from completion.paths import cache_dir

PASS_ROWS = 3
"""Rows of a pass until a first text: the last token, and two that are drafted."""
_PASSES = 2.1
"""Passes until a text is shown, at the median key of typed sessions that does not follow what was suggested; mostly, a
line must be complete. As fitted for the default model and `qwen2.5-coder-1.5b`: docs/decisions.md."""
_OTHER_MS = 10.0
"""Time of a first text beside the passes: prompt, drafts, grammar and search. It hardly depends on the model."""
_UNBLOCKED = 1.2
"""Time of a pass in int8 over that in blocks where only one of them was measured: docs/decisions.md."""
_BATTERY_SHARE = 0.5
"""Share of the budget that a first text may take on battery: it takes processor time, and so energy, in proportion."""
_ROOM_BYTES = 600_000_000
"""Memory that the engine takes beside the weights, and that others need to stay as quick as they are."""
_MARGIN = 0.85
"""Share of the budget within which a model must be that is larger than the one that serves: none comes and goes."""


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model of the Qwen2.5-Coder family.

    Attributes:
        spec: What `load_model` takes.
        name: Name that a loaded model has.
        weights: Number of weights that a pass reads; each is multiplied and added once for every row.
        block_bytes: Bytes that a pass reads of its weights in blocks of about 4 bits.
        gives: What it is better at than the default model; a clause.
        in_blocks: Whether its files have blocks, which the backend `auto` keeps.
    """

    spec: str
    name: str
    weights: int
    block_bytes: int
    download_bytes: int
    gives: str = ""
    in_blocks: bool = True

    def read_bytes(self, form: str) -> int:
        """Return how many bytes a pass reads in a form of the weights: "q4", "int8" or 16 bits."""
        return {"q4": self.block_bytes, "int8": self.weights}.get(form, 2 * self.weights)


def _of_hub(name: str, weights: int, block_bytes: int, download_bytes: int, licence: str = "") -> KnownModel:
    gives = f"larger models are right more often, which was not measured for this one{licence}"
    return KnownModel(f"Qwen/{name}", name, weights, block_bytes, download_bytes, gives, in_blocks=False)


_BETTER = "its first lines are right a little more often, and it writes edits that the default model cannot"
_SMALL, _LARGER = DEFAULT_PACKAGE, LARGER_PACKAGE
KNOWN = (
    KnownModel("default", _SMALL.name, 494_000_000, 395_500_000, _SMALL.size_bytes),
    KnownModel(_LARGER.name, _LARGER.name, 1_544_000_000, 1_001_900_000, _LARGER.size_bytes, _BETTER),
    _of_hub(
        "Qwen2.5-Coder-3B-Instruct", 3_086_000_000, 2_003_000_000, 6_171_000_000, "; no commercial use by its licence"
    ),
    _of_hub("Qwen2.5-Coder-7B-Instruct", 7_070_000_000, 4_590_000_000, 15_231_000_000),
)
"""The models that `auto` chooses from, the smallest and default one first."""
_BY_NAME = {model.name: model for model in KNOWN}


def is_installed(model: KnownModel) -> bool:
    """Return whether a model can be loaded without a download."""
    packaged = next((one for one in PACKAGED_MODELS if one.name == model.name), None)
    if packaged is None:
        from completion.model.store.hub import cached_folder  # noqa: PLC0415 -- imports the hub's library for a second

        return cached_folder(model.spec) is not None
    is_converted = is_complete(Source(packaged.name, packaged.sha256).folder)
    return is_converted or len(fetched(packaged)) == len(packaged.parts) or all_parts_installed(packaged)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a start measured for a model that runs here; see `completion.decoding.step_costs`.

    Attributes:
        form: Form of its weights: "q4", "int8", or another one of 16 or 32 bits.
        device: Where it runs: "cpu", or as torch names a GPU.
        threads: The setting `threads` with which it ran; 0 if the engine chose.
        costs_ms: Time of a pass by its number of rows, from one row on.
        machine: Name of the machine, which may share its cache folder with others.
    """

    model: str
    form: str
    device: str
    threads: int
    costs_ms: tuple[float, ...]
    machine: str = ""

    def to_json(self) -> str:
        """Return what `from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> Measured:
        """Return what `to_json` wrote.

        Raises:
            ValueError, LookupError, TypeError: It is something else.
        """
        found = json.loads(text)
        if not all(isinstance(cost, float) and 0 < cost < math.inf for cost in found["costs_ms"]):
            raise ValueError("a time is no positive number")
        return cls(**{**found, "costs_ms": tuple(found["costs_ms"])})

    def first_text_ms(self, to: KnownModel, form: str = "") -> float:
        """Return the forecast of a first text of a model in this one's form of weights, or in int8 instead of blocks.

        A pass of n rows takes bytes / read speed + (n − 1) · operations / pace: both are as measured. What else the
        engine does takes as long for every model.
        """
        of, once = _BY_NAME[self.model], self.costs_ms[0]
        reading, computing = to.read_bytes(self.form) / of.read_bytes(self.form), to.weights / of.weights
        rows_ms = self.costs_ms[min(PASS_ROWS, len(self.costs_ms)) - 1] - once
        factor = _UNBLOCKED if (self.form, form) == ("q4", "int8") else 1.0
        return _OTHER_MS + factor * _PASSES * (once * reading + rows_ms * computing)


def measured_folder() -> Path:
    """Return the folder of measurements, one file for each way to run a model."""
    return cache_dir() / "measured"


def measured_here() -> list[Measured]:
    """Return what starts on this machine have measured for known models, the newest first."""
    found = list[tuple[int, Measured]]()
    for path in measured_folder().glob("*.json"):
        with suppress(OSError, ValueError, LookupError, TypeError):  # a start replaces what is damaged
            one = Measured.from_json(path.read_bytes())
            if one.model in _BY_NAME and one.machine == platform.node():
                found.append((path.stat().st_mtime_ns, one))
    return [one for _, one in sorted(found, key=lambda pair: -pair[0])]


@dataclass(frozen=True, slots=True)
class Machine:
    """What a machine has now for a model.

    Attributes:
        memory_bytes: Free memory, with what the serving model has; of the GPU, where that runs models.
        threads: The setting `threads`.
        load: Mean number of running processes over the number of cores.
        saves_battery: Whether it runs on battery and the user wants less work then.
    """

    memory_bytes: int
    device: str = "cpu"
    threads: int = 0
    load: float = 0.0
    saves_battery: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """Which model serves, and why.

    Attributes:
        reason: A sentence on why this one.
        remark: A sentence on why it is smaller than this machine could run; "" if it is not.
        offer: A better one that is not installed; None if there is none.
        forecasts_ms: First text of each known model by its name; empty before anything was measured.
    """

    model: KnownModel
    reason: str
    remark: str = ""
    offer: KnownModel | None = None
    forecasts_ms: Mapping[str, float] = field(default_factory=dict)

    @property
    def offered(self) -> str:
        """What the offered model gives, as a sentence; "" without one."""
        if self.offer is None:
            return ""
        name, gives = self.offer.name, self.offer.gives
        return f"{name} would show its first text after about {self.forecasts_ms[name]:.0f} ms here: {gives}."

    @property
    def download(self) -> str:
        """How the user gets the offered model, as a sentence; "" without one."""
        if self.offer is None:
            return ""
        return f"To get it, {self.offer.download_bytes / 1e9:.1f} GB: draftline models get {self.offer.spec}"


def choose(
    machine: Machine,
    measured: Sequence[Measured],
    is_installed: Callable[[KnownModel], bool],
    budget_ms: float,
    backend: Backend = "auto",
    serving: str = "",
) -> Choice:
    """Return the largest known model whose first text is within a budget, with its reason.

    Of what was measured here, the newest comes first. `serving` is the model that serves now, "" for none.
    """
    gpu, lost = next((one for one in measured if one.device != "cpu"), None), None
    if gpu is not None and machine.device == "cpu":  # the GPU is lost, and what served on it
        with_gpu = replace(machine, device=gpu.device, threads=gpu.threads, load=0.0, saves_battery=False)
        lost = choose(with_gpu, measured, is_installed, budget_ms, backend).model
    here = [one for one in measured if (one.device, one.threads) == (machine.device, machine.threads)]
    mine = [one for one in here if backend not in {"int8", "q4"} or one.form == backend]
    if not mine:
        reason = "It is the default, until a start has measured how quick this machine is."
        return Choice(KNOWN[0], reason, _in_place_of(KNOWN[0], lost, "Without the GPU"))
    forecasts = {model.name: _forecast_ms(model, mine, backend) for model in KNOWN}
    limit_ms = budget_ms * (_BATTERY_SHARE if machine.saves_battery else 1.0)
    limit_ms /= max(1.0, machine.load) if machine.device == "cpu" else 1.0

    def within(most_ms: float) -> list[KnownModel]:
        return [model for model in KNOWN if forecasts[model.name] <= most_ms and _fits(model, machine, backend)]

    def largest(most_ms: float) -> KnownModel:
        sure, rank = within(_MARGIN * most_ms), _BY_NAME[serving].weights if serving in _BY_NAME else math.inf
        quick = (one for one in reversed(within(most_ms)) if one.weights <= rank or one in sure)
        return next(filter(is_installed, quick), KNOWN[0])

    model, calm = largest(limit_ms), largest(budget_ms)
    why = "On battery" if machine.saves_battery else "While other programs are busy"
    remark = _in_place_of(model, calm, why)
    best = next((one for one in reversed(within(_MARGIN * budget_ms)) if one.weights > calm.weights), None)
    times = ", ".join(f"{name} {ms:.0f} ms" for name, ms in forecasts.items())
    which = "the default, as none has" if forecasts[model.name] > budget_ms else "the largest installed one with"
    reason = (
        f"It is {which} its first text within the {budget_ms:.0f} ms of `first_text_budget_ms`; forecasts: {times}."
    )
    offer, remark = None if remark else best, remark or _in_place_of(model, lost, "Without the GPU")
    return Choice(model, reason, remark, offer, forecasts)


def _forecast_ms(model: KnownModel, mine: Sequence[Measured], backend: Backend) -> float:
    """Return the forecast of a model's first text by its own measurement, else by that of the model next in size."""
    nearest = min(mine, key=lambda one: abs(math.log(_BY_NAME[one.model].weights / model.weights)))
    return nearest.first_text_ms(model, "int8" if backend == "auto" and not model.in_blocks else nearest.form)


def _fits(model: KnownModel, machine: Machine, backend: Backend) -> bool:
    smallest = machine.device != "cpu" or backend == "q4" or (backend == "auto" and model.in_blocks)
    return model.read_bytes("q4" if smallest else "int8") + _ROOM_BYTES <= machine.memory_bytes


def _in_place_of(model: KnownModel, larger: KnownModel | None, why: str) -> str:
    if larger is None or larger.weights <= model.weights:
        return ""
    return f"{why}, {model.name} serves in the place of {larger.name}."
