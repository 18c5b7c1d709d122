"""Experiments: each request gets one of two values of a setting, by hour or by file, and is recorded with it."""

from __future__ import annotations

import dataclasses
import hashlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from completion.errors import ConfigurationError, StorageError
from completion.paths import state_dir
from lsp_server.settings.config import with_text
from lsp_server.settings.shared_file import Remembered
from lsp_server.settings.table import COMPARABLE, DEFAULTS, Settings

By = Literal["hour", "file"]
BYS: tuple[By, ...] = get_args(By)

_NAME = re.compile(r"[\w.-]{1,40}")
_SECONDS_PER_HOUR = 3600
_HOURS_PER_DAY = 24


@dataclass(frozen=True, slots=True)
class Arm:
    """One side of an experiment.

    Attributes:
        experiment: Name of the experiment; "" if none is running.
        side: The setting with its value, for example "mode=line"; "" if none is running.
    """

    experiment: str
    side: str


NO_ARM = Arm("", "")


@dataclass(frozen=True, slots=True)
class Experiment:
    """A running experiment.

    Attributes:
        setting: Name of the setting whose values are compared.
        values: The two values, as the user wrote them.
        by: What the values alternate by.
        started_s: Start of the experiment, in seconds since 1970.
    """

    name: str
    setting: str
    values: tuple[str, str]
    by: By
    started_s: float

    def __post_init__(self) -> None:
        """Validate the fields.

        Raises:
            ConfigurationError: The name, the setting, a value or `by` is invalid.
        """
        if not _NAME.fullmatch(self.name):
            raise ConfigurationError(
                f'"{self.name}" is not a valid experiment name. Use up to 40 letters, digits, ".", "_" and "-".'
            )
        if self.setting not in COMPARABLE:
            raise ConfigurationError(f'"{self.setting}" cannot be compared. Choose one of: {", ".join(COMPARABLE)}.')
        if self.by not in BYS:
            raise ConfigurationError(f'Values cannot alternate by "{self.by}". Choose one of: {", ".join(BYS)}.')
        first, second = (getattr(with_text(DEFAULTS, self.setting, value), self.setting) for value in self.values)
        if first == second:
            raise ConfigurationError(f"Both values of {self.setting} are {first}. Give two different values.")

    @property
    def arms(self) -> tuple[Arm, Arm]:
        """Both sides, in the order of `values`."""
        first, second = (Arm(self.name, f"{self.setting}={value}") for value in self.values)
        return first, second

    def arm(self, document: str, now_s: float) -> Arm:
        """Return the side of a request.

        By hour, the values alternate, and each day starts with the other value than the day before, so that neither
        value gets all mornings. By file, a hash of the document's URI decides, so that a file keeps its side.
        """
        if self.by == "hour":
            hour = int(now_s // _SECONDS_PER_HOUR)
            return self.arms[(hour + hour // _HOURS_PER_DAY) % 2]
        digest = hashlib.sha256(f"{self.name}\0{document}".encode("utf-8", "replace")).digest()
        return self.arms[digest[0] % 2]

    def applied(self, settings: Settings, arm: Arm) -> Settings:
        """Return the settings with an arm's value."""
        return with_text(settings, self.setting, arm.side.partition("=")[2])


class CurrentExperiment(Remembered[Experiment | None]):
    """The running experiment of this user, None if none is running."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        super().__init__(path, lambda found: Experiment(**found | {"values": tuple(found["values"])}), None)
        self.path = path
        self._clock = clock

    def settings_of(self, document: str, settings: Settings) -> tuple[Settings, Arm]:
        """Return the settings for a document's request, and their side of the experiment.

        With telemetry off, no experiment applies, because nothing would be recorded.
        """
        experiment = self.get() if settings.telemetry else None
        if experiment is None:
            return settings, NO_ARM
        arm = experiment.arm(document, self._clock())
        return experiment.applied(settings, arm), arm

    def start(self, experiment: Experiment) -> None:
        """Start an experiment.

        Raises:
            ConfigurationError: Another one is running.
            StorageError: Its file cannot be written.
        """

        def started(running: Experiment | None) -> tuple[Experiment, object]:
            if running is not None:
                raise ConfigurationError(
                    f'The experiment "{running.name}" is still running. To end it, run: draftline experiment stop'
                )
            return experiment, dataclasses.asdict(experiment)

        self.change(started)

    def stop(self) -> None:
        """End the running experiment and keep its records.

        Raises:
            StorageError: Its file cannot be removed.
        """
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(
                f"{self.path} cannot be removed ({error.strerror}). Check the permissions of its folder."
            ) from error


def experiment_path() -> Path:
    """Return the path of the running experiment's file."""
    return state_dir() / "experiment.json"
