"""Starts an engine host as a process of its own that outlives its starter."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from completion.errors import EngineUnavailableError
from completion.host.process.address import DEFAULT_MODEL_NAME, HostAddress, host_address, normal_model
from completion.host.process.exit_status import ALREADY_RUNNING, LOADING_FAILED
from completion.paths import writing_to
from completion.version import version

if TYPE_CHECKING:
    import psutil

_EXPECTED = (0, LOADING_FAILED, ALREADY_RUNNING)
"""Exit statuses of a host that need no error here."""
_STDERR_BYTES = 1_000_000


class HostGoneError(EngineUnavailableError):
    """No host answers at this address, or it ended while it answered."""


class HostSilentError(HostGoneError):
    """A host took the connection and did not answer in time."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Which engine a client wants.

    Attributes:
        model: "default", a local folder, a .gguf file or a hub id.
        backend: Which implementation runs the model; "auto" picks.
        threads: Threads for the model; 0 is the implementation's choice.
        idle_s: How long the host outlives its last client; used by the client that starts it.
        url: A host on another machine, for example "http://10.0.0.2:8012"; "" is the local one, started on demand.
        token: The bearer token for `url`.
        is_editor: The host forgets the documents and workspaces that only this client used when it closes them or
            leaves; what a command on a terminal used stays for the next one.
        program: What starts a local host; arguments are appended.
    """

    model: str = DEFAULT_MODEL_NAME
    backend: str = "auto"
    threads: int = 0
    idle_s: float = 600.0
    url: str = ""
    token: str = ""
    is_editor: bool = False
    # -P: the folder that the editor was opened in must not be able to replace our modules.
    program: tuple[str, ...] = (sys.executable, "-P", "-m", "completion.host")


class HostLauncher:
    """Starts the local host when there is none; several starters at once end up with one host."""

    def __init__(self, options: EngineOptions) -> None:
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def address(self) -> HostAddress:
        """Where the host listens, or will; raises as `host_address`."""
        return host_address(self._options.model, self._options.backend)

    def ensure_running(self) -> None:
        """Start a host unless one that was started here still runs.

        Raises:
            EngineUnavailableError: The last one ended with an error, or none can be started; says why.
            StorageError: What it prints cannot be written.
        """
        if self._process is not None:
            status = self._process.poll()
            if status is None:
                return
            self._process = None
            if status > 0 and status not in _EXPECTED:
                crash = self.address().crash_path
                raise EngineUnavailableError(
                    f"The engine could not be started (exit status {status}): {_last_line(crash)} See {crash}."
                )
        self._process = self._start()

    def processes(self) -> list[psutil.Process]:
        """The host at this address, and the one that was started here, listening or not."""
        import psutil  # noqa: PLC0415 - takes 20 ms, and is needed when something is wrong

        from lsp_server.engine.process import processes_with  # noqa: PLC0415

        found = processes_with(self.address().lock_path, self._options.program)
        if self._process is not None and self._process.poll() is None:
            found.append(psutil.Process(self._process.pid))
        return list(dict.fromkeys(found))

    def end(self, processes: Sequence[psutil.Process], grace_s: float) -> None:
        """End what `processes` found: SIGTERM, and SIGKILL after `grace_s` seconds."""
        from lsp_server.engine.process import end  # noqa: PLC0415

        end(processes, grace_s)

    def _start(self) -> subprocess.Popen[bytes]:
        address, options = self.address(), self._options
        arguments = ["--model", normal_model(options.model), "--backend", options.backend]
        arguments += ["--idle-seconds", str(options.idle_s)]
        if options.threads:
            arguments += ["--threads", str(options.threads)]
        mode = "ab" if address.crash_path.exists() and address.crash_path.stat().st_size < _STDERR_BYTES else "wb"
        with writing_to(address.log_folder, "DRAFTLINE_STATE_DIR"):
            stderr = address.crash_path.open(mode)
        try:
            return subprocess.Popen(
                [*options.program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                cwd=address.runtime_folder,  # not the user's project, which could then not be unmounted
                env=_environment(),
                start_new_session=True,
            )
        except OSError as error:
            raise EngineUnavailableError(
                f"{options.program[0]} cannot be started ({error.strerror}). Check that it exists and memory is free."
            ) from error
        finally:
            stderr.close()


def _environment() -> dict[str, str]:
    """Our own environment; a checkout that is not installed is made importable."""
    environment = dict(os.environ)
    if version() == "source":
        here = str(Path(__file__).parents[2])
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (here, environment.get("PYTHONPATH", ""))))
    return environment


def _last_line(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n") if path.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "it printed nothing.")
