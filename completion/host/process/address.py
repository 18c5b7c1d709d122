"""The files of a user's engine host for one model, which no other user can access, and its exit statuses.

Imports only the standard library and light modules, because the language server uses it before any model is loaded.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from completion.paths import check_private, machine_state_dir, model_path, runtime_dir, writing_to
from completion.version import version

DEFAULT_MODEL_NAME = "default"
ALREADY_RUNNING = 75
"""Exit status of a host if another process already serves this model: EX_TEMPFAIL of sysexits.h."""
LOADING_FAILED = 70
"""Exit status of a host if the model failed to load: EX_SOFTWARE of sysexits.h. The clients have received the error."""


@dataclass(frozen=True, slots=True)
class HostAddress:
    """The files of one host."""

    name: str
    runtime_folder: Path
    log_folder: Path

    @property
    def endpoint_path(self) -> Path:
        """The Unix socket that the host listens on, or the file that says where it listens on TCP."""
        return self.runtime_folder / f"{self.name}.sock"

    @property
    def lock_path(self) -> Path:
        """The lock that a host holds while it runs, so that two clients that start one at once get a single host."""
        return self.runtime_folder / f"{self.name}.lock"

    @property
    def fatal_path(self) -> Path:
        """The record of what the host serves, which tells its successor on what it ended."""
        return self.runtime_folder / f"{self.name}.fatal"

    @property
    def log_path(self) -> Path:
        """The host's log file, which is rotated and never contains source text."""
        return self.log_folder / f"{self.name}.log"

    @property
    def crash_path(self) -> Path:
        """The host's standard error: import errors, crashes in native code."""
        return self.log_folder / f"{self.name}.stderr"


def host_address(model: str, backend: str, remote: Sequence[str] = ()) -> HostAddress:
    """Return the files of the host that serves this model. Each version of draftline has a host of its own.

    Args:
        model: The model.
        backend: Implementation that runs it.
        remote: Arguments that name the model server, if it runs there.

    Raises:
        PermissionsError: Another user owns the folder or can access it.
        StorageError: A folder cannot be created.
    """
    facts = "\0".join((version(), normal_model(model), backend, *remote))
    key = hashlib.sha256(facts.encode("utf-8", "surrogatepass")).hexdigest()[:12]  # of a name that is no UTF-8, too
    folder = runtime_dir()
    check_private(folder)
    logs = machine_state_dir() / "logs"
    with writing_to(logs, "DRAFTLINE_STATE_DIR"):
        logs.mkdir(mode=0o700, exist_ok=True)
    return HostAddress(name=f"engine-{key}", runtime_folder=folder, log_folder=logs)


def normal_model(model: str) -> str:
    """Return one spelling for each model: a path becomes absolute, a plain name or hub id stays."""
    path = model_path(model)
    return model if path is None else os.path.realpath(path)  # `Path.resolve` raises where links lead in a circle
