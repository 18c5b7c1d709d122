"""An engine host: which one, its state, and its process, which outlives the client that started it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import psutil

from completion.backend import GPU_MEMORY_SHARE, Backend
from completion.errors import EngineSilentError, EngineUnavailableError
from completion.host.process.address import (
    ALREADY_RUNNING,
    DEFAULT_MODEL_NAME,
    LOADING_FAILED,
    HostAddress,
    host_address,
    normal_model,
)
from completion.paths import module_environment, writing_to
from completion.remote.address import RemoteAddress
from drafting.state_files import require_file
from lsp_server.engine.auto_model import AUTO
from lsp_server.settings.config import remote_address
from lsp_server.settings.table import Settings

STOP_S = 10.0
"""Time for an engine to handle SIGTERM, in seconds: it needs 6 s at most."""

_EXPECTED = (0, LOADING_FAILED, ALREADY_RUNNING)
"""Exit statuses of a host that are no failure to start."""
_MAX_STDERR_BYTES = 1_000_000
"""Size of the file of a host's standard error from which the next host overwrites it."""


class HostGoneError(EngineUnavailableError):
    """No host answers at the address, or it ended during a reply."""


class HostSilentError(HostGoneError, EngineSilentError):
    """A host accepted the connection and did not answer in time."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """The engine that a client connects to.

    Attributes:
        model: "default", a local folder, a .gguf file or a hub id.
        backend: Implementation that runs the model; "auto" chooses one.
        threads: Number of CPU threads for the model; 0 lets the implementation choose.
        gpu_memory_share: Share of a GPU's memory that the model may take; 0 for no GPU.
        idle_s: Seconds that the host outlives its last client. Only the client that starts the host sets it.
        is_editor: Whether the host forgets the documents and workspaces that only this client used when the client
            closes them or disconnects. For a command in a terminal, it keeps them for the next command.
        remote: Address of the host on another machine, or of the model server that the local host generates with; its
            `url` is "" if the model runs here.
        program: Command that starts a local host; arguments are appended to it.
    """

    model: str = DEFAULT_MODEL_NAME
    backend: Backend = "auto"
    threads: int = 0
    gpu_memory_share: float = GPU_MEMORY_SHARE
    idle_s: float = 600.0
    is_editor: bool = False
    remote: RemoteAddress = field(default_factory=RemoteAddress)
    # -P: modules in the working directory, the user's project, must not shadow draftline's.
    program: tuple[str, ...] = (sys.executable, "-P", "-m", "completion.host")

    @classmethod
    def of_settings(cls, settings: Settings, *, is_editor: bool, automatic: str = DEFAULT_MODEL_NAME) -> Self:
        """Return the engine that the user's settings name; `automatic` is the model if they leave it to draftline."""
        return cls(
            model=automatic if settings.model == AUTO else settings.model,
            backend=settings.backend,
            threads=settings.threads,
            gpu_memory_share=settings.gpu_memory_share,
            idle_s=settings.idle_minutes * 60,
            is_editor=is_editor,
            remote=remote_address(settings),
        )


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """The state of a host at one moment.

    Attributes:
        state: "starting", "loading", "ready", "error", or "gone" if no host is connected.
        percent: Loading progress, 0 to 100.
        sentence: Message for the user: what the host is doing, or what went wrong and what to do.
        code: Stable name of the error in state "error", else "".
        pid: Process number of the host, 0 if unknown.
    """

    state: str = "gone"
    percent: float = 0.0
    sentence: str = ""
    model: str = ""
    device: str = ""
    code: str = ""
    pid: int = 0


def status_of(health: Mapping[str, Any]) -> EngineStatus:
    """Return the status that a host's health reports; raise KeyError where a field is missing."""
    return EngineStatus(**{field.name: health[field.name] for field in fields(EngineStatus)})


class HostLauncher:
    """Starts the local host if none runs. Several launchers that start one at once get a single host."""

    def __init__(self, options: EngineOptions) -> None:
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def address(self) -> HostAddress:
        """Return the files of the host. The errors are those of `host_address`."""
        return host_address(self._options.model, self._options.backend, self._options.remote.arguments())

    def ensure_running(self) -> bool:
        """Start a host, unless the one that this launcher started still runs; return whether a signal ended that one.

        Raises:
            EngineUnavailableError: The previous host ended with an error, or the program cannot be started.
            StorageError: The file for the host's standard error cannot be written.
        """
        status = 0
        if self._process is not None:
            running = self._process.poll()
            if running is None:
                return False
            status, self._process = running, None
            if status > 0 and status not in _EXPECTED:
                crash = self.address().crash_path
                raise EngineUnavailableError(
                    f"The engine could not start (exit status {status}): {_last_line(crash)} Its output: {crash}"
                )
        self._process = self._start()
        return status < 0

    def processes(self) -> list[psutil.Process]:
        """Return the processes of the host at the address and of the one that this launcher started."""
        return list(dict.fromkeys([*self._holders(), *self._started()]))

    def is_stuck(self) -> bool:
        """Return whether a process keeps the lock, and so must listen or end soon, or the started one is stopped."""
        return bool(self._holders()) or any(is_stopped(process) for process in self._started())

    def _holders(self) -> list[psutil.Process]:
        return processes_with(self.address().lock_path, self._options.program)

    def _started(self) -> list[psutil.Process]:
        if self._process is None or self._process.poll() is not None:
            return []
        return [psutil.Process(self._process.pid)]

    def _start(self) -> subprocess.Popen[bytes]:
        address, options = self.address(), self._options
        arguments = ["--model", normal_model(options.model), "--backend", options.backend]
        arguments += ["--threads", str(options.threads), "--gpu-memory-share", str(options.gpu_memory_share)]
        arguments += ["--idle-seconds", str(options.idle_s), *options.remote.arguments()]
        require_file(address.crash_path)
        mode = "ab" if address.crash_path.exists() and address.crash_path.stat().st_size < _MAX_STDERR_BYTES else "wb"
        with writing_to(address.log_folder, "DRAFTLINE_STATE_DIR"):
            stderr = address.crash_path.open(mode)
        try:
            return subprocess.Popen(
                [*options.program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                cwd=address.runtime_folder,  # in the user's project, the host would keep its file system mounted
                env=module_environment(),
                **_detached(),
            )
        except OSError as error:
            raise EngineUnavailableError(
                f"{options.program[0]} cannot be started ({error.strerror}). Check that it exists and that memory is "
                "free."
            ) from error
        finally:
            stderr.close()


def _detached() -> dict[str, Any]:
    """Return what keeps a process alive when this one's terminal closes; on Windows, without a window of its own."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP}
    else:
        return {"start_new_session": True}


def _last_line(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n") if path.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "it printed no error.")


def processes_with(lock_path: Path, program: Sequence[str]) -> list[psutil.Process]:
    """Return this user's host processes that have a lock file open.

    Args:
        lock_path: Lock file of an address; its host keeps it open while it runs.
        program: Command that starts a host; a host's command line contains its last word or `serve`.
    """
    lock = os.path.realpath(lock_path)
    words = {program[-1], "serve"}
    return [process for process in psutil.process_iter() if _is_host(process, lock, words)]


def is_stopped(process: psutil.Process) -> bool:
    """Return whether a process is stopped by SIGSTOP or a terminal; it would handle SIGTERM only once continued."""
    try:
        return bool(process.status() == psutil.STATUS_STOPPED)
    except psutil.Error:
        return False


def end(processes: Sequence[psutil.Process], grace_s: float) -> None:
    """End processes with SIGTERM, and those that are stopped or still run after `grace_s` seconds with SIGKILL."""
    for process in processes:
        with suppress(psutil.Error):
            process.terminate()
    psutil.wait_procs([process for process in processes if not is_stopped(process)], grace_s)
    for process in processes:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(processes, grace_s)


def _is_host(process: psutil.Process, lock: str, words: set[str]) -> bool:
    try:
        return (
            not words.isdisjoint(process.cmdline())
            and process.username() == psutil.Process().username()
            and any(file.path == lock for file in process.open_files())
        )
    except psutil.Error:
        return False
