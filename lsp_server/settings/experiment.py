"""Two values of a setting compared on oneself: by hour or by file each request gets one of them, and is recorded so."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from completion.errors import ConfigurationError, StorageError
from completion.paths import state_dir
from lsp_server.settings.config import with_text
from lsp_server.settings.table import COMPARABLE, DEFAULTS, Settings

_log = logging.getLogger(__name__)

By = Literal["hour", "file"]
BYS: tuple[By, ...] = get_args(By)

_NAME = re.compile(r"[\w.-]{1,40}")
_SECONDS_PER_HOUR = 3600
_HOURS_PER_DAY = 24


@dataclass(frozen=True, slots=True)
class Arm:
    """One side of an experiment.

    Attributes:
        experiment: Its name; "" outside of any.
        side: Its setting with its value, "mode=line"; "" outside of any.
    """

    experiment: str
    side: str


NO_ARM = Arm("", "")


@dataclass(frozen=True, slots=True)
class Experiment:
    """A running experiment.

    Attributes:
        values: The setting's two values, as they were written.
        by: What the values alternate by.
        started_s: Seconds since 1970.
    """

    name: str
    setting: str
    values: tuple[str, str]
    by: By
    started_s: float

    def __post_init__(self) -> None:
        """Check it.

        Raises:
            ConfigurationError: The name, the setting or a value cannot be used.
        """
        if not _NAME.fullmatch(self.name):
            raise ConfigurationError(
                f'"{self.name}" is no name for an experiment: up to 40 letters, digits, "." "_" "-".'
            )
        if self.setting not in COMPARABLE:
            raise ConfigurationError(f'"{self.setting}" cannot be compared; these can: {", ".join(COMPARABLE)}.')
        if self.by not in BYS:
            raise ConfigurationError(f'"{self.by}" is nothing to alternate by; these are: {", ".join(BYS)}.')
        first, second = (getattr(with_text(DEFAULTS, self.setting, value), self.setting) for value in self.values)
        if first == second:
            raise ConfigurationError(f"Both values of {self.setting} are {first}; there is nothing to compare.")

    @property
    def arms(self) -> tuple[Arm, Arm]:
        """Both sides."""
        first, second = (Arm(self.name, f"{self.setting}={value}") for value in self.values)
        return first, second

    def arm(self, document: str, now_s: float) -> Arm:
        """The side that a document's request belongs to at a moment.

        Hours take turns, and every day begins with the other value, so that no value gets the mornings to itself.
        Files are dealt out by a hash of their address: a file stays on its side.
        """
        if self.by == "hour":
            hour = int(now_s // _SECONDS_PER_HOUR)
            return self.arms[(hour + hour // _HOURS_PER_DAY) % 2]
        digest = hashlib.sha256(f"{self.name}\0{document}".encode("utf-8", "replace")).digest()
        return self.arms[digest[0] % 2]

    def applied(self, settings: Settings, arm: Arm) -> Settings:
        """The settings with an arm's value in them."""
        return with_text(settings, self.setting, arm.side.partition("=")[2])


class CurrentExperiment:
    """The experiment that runs now, for every server of this user; kept in a small file beside the telemetry.

    Asking costs one look at the file's date, so nobody has to watch it.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._seen: tuple[int, int] | None = None
        self._experiment: Experiment | None = None

    def get(self) -> Experiment | None:
        """The running experiment; None where none runs, or what stands in the file cannot be used."""
        try:
            found = self._path.stat()
        except OSError:
            self._seen = self._experiment = None
            return None
        if self._seen != (found.st_mtime_ns, found.st_ino):
            self._seen = found.st_mtime_ns, found.st_ino
            self._experiment = self._read()
        return self._experiment

    def settings_of(self, document: str, settings: Settings) -> tuple[Settings, Arm]:
        """The settings that a document's request is answered by, and the side that they belong to.

        Nothing is compared while nothing is recorded.
        """
        experiment = self.get() if settings.telemetry else None
        if experiment is None:
            return settings, NO_ARM
        arm = experiment.arm(document, self._clock())
        return experiment.applied(settings, arm), arm

    def start(self, experiment: Experiment) -> None:
        """Let an experiment run from now on.

        Raises:
            ConfigurationError: Another one runs.
            StorageError: It cannot be written down.
        """
        running = self.get()
        if running is not None:
            raise ConfigurationError(f'The experiment "{running.name}" runs. Run first: draftline experiment stop')
        fresh = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            fresh.write_text(json.dumps(dataclasses.asdict(experiment)), encoding="utf-8")
            fresh.replace(self._path)
        except OSError as error:
            raise StorageError(f"{self._path} cannot be written ({error.strerror}).") from error

    def stop(self) -> None:
        """End the running experiment; what it recorded stays.

        Raises:
            StorageError: Its file cannot be removed.
        """
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"{self._path} cannot be removed ({error.strerror}).") from error

    def _read(self) -> Experiment | None:
        try:
            written = json.loads(self._path.read_text(encoding="utf-8"))
            return Experiment(**written | {"values": tuple(written["values"])})
        except (OSError, ValueError, TypeError, KeyError, ConfigurationError) as error:
            _log.warning("%s cannot be used as an experiment: %s", self._path, error)
            return None


def experiment_path() -> Path:
    """Where the running experiment is written down."""
    return state_dir() / "experiment.json"
