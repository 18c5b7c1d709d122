"""The checks of `draftline doctor` that need no engine: each looks at one thing and says what to do about it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from completion.errors import DraftlineError
from completion.host.process.address import check_private, host_address
from completion.model.store import model_store
from completion.paths import cache_dir
from completion.version import version

_GIB = 1 << 30
_NEEDED_MEMORY = 2 * _GIB
_NEEDED_DISK = 3 * _GIB
_OLDEST_NEOVIM = (0, 11)
# What makes integer products fast: without them everything works, slower.
_FAST_FLAGS = ("avx512_vnni", "avx_vnni", "amx_int8", "asimddp")
_NEEDED_FLAGS = ("avx2", "asimd")
_EDITORS = {
    "nvim": "Neovim",
    "code": "VS Code",
    "codium": "VSCodium",
    "code-server": "code-server",
    "cursor": "Cursor",
    "hx": "Helix",
    "emacs": "Emacs",
    "zed": "Zed",
    "subl": "Sublime Text",
    "vim": "Vim",
}


@dataclass(frozen=True, slots=True)
class Check:
    """One row: what was looked at, what was found, what to do."""

    name: str
    state: Literal["ok", "warn", "fail"]
    found: str
    advice: str = ""


def machine_checks(model: str, backend: str) -> list[Check]:
    """Everything but the engine itself, in the order in which a completion needs it."""
    return [
        check_version(),
        check_model(model),
        check_memory(psutil.virtual_memory().available),
        check_cpu(cpu_flags()),
        check_device(_gpu_name()),
        check_disk(model, shutil.disk_usage(cache_dir()).free),
        check_socket(model, backend),
        check_editors(shutil.which, _first_line),
    ]


def check_version() -> Check:
    """The program itself."""
    return Check("draftline", "ok", f"{version()}, Python {platform.python_version()}, {sys.executable}")


def check_model(model: str) -> Check:
    """Whether the model is there or can be made."""
    packaged = model_store.packaged_model(model)
    if packaged is None:
        path = Path(model).expanduser()
        if path.exists():
            return Check("model", "ok", str(path))
        return Check("model", "warn", f"{model} is not on this machine", "It is downloaded at first use, if it can be.")
    status = model_store.packaged_status(packaged)
    found = f"{status.title}, {status.state}"
    if status.state is model_store.ModelState.CONVERTED:
        return Check("model", "ok", found, status.advice)
    if status.state is model_store.ModelState.FOUND:
        return Check("model", "ok", found, status.advice)
    return Check("model", "fail", found, status.advice)


def check_memory(available_bytes: int) -> Check:
    """Whether the model fits beside what runs already."""
    found = f"{available_bytes / _GIB:.1f} GiB free"
    if available_bytes >= _NEEDED_MEMORY:
        return Check("memory", "ok", found)
    advice = f"The default model needs {_NEEDED_MEMORY // _GIB} GiB. Close other programs, or choose a smaller model."
    return Check("memory", "warn" if available_bytes >= _NEEDED_MEMORY // 2 else "fail", found, advice)


def check_cpu(flags: frozenset[str]) -> Check:
    """Whether the processor has fast integer products."""
    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    fast = [flag for flag in _FAST_FLAGS if flag in flags]
    found = f"{cores} cores, {platform.machine()}" + (f", {', '.join(fast)}" if fast else "")
    if fast or not flags:
        return Check("processor", "ok", found)
    if any(flag in flags for flag in _NEEDED_FLAGS):
        return Check("processor", "warn", found, "No VNNI or AMX: it works, more slowly.")
    return Check("processor", "warn", found, "No vector instructions were found: expect several seconds for a line.")


def check_device(gpu: str) -> Check:
    """Where the model will run."""
    return Check("device", "ok", gpu or "CPU (no NVIDIA GPU found)")


def check_disk(model: str, free_bytes: int) -> Check:
    """Whether a conversion would fit."""
    found = f"{free_bytes / _GIB:.1f} GiB free at {cache_dir()}"
    if free_bytes >= _NEEDED_DISK:
        return Check("disk", "ok", found)
    packaged = model_store.packaged_model(model)
    ready = packaged and model_store.packaged_status(packaged).state is model_store.ModelState.CONVERTED
    advice = f"Converting the model takes {_NEEDED_DISK // _GIB} GiB. Free some, or set DRAFTLINE_CACHE_DIR."
    return Check("disk", "warn" if ready else "fail", found, advice)


def check_socket(model: str, backend: str) -> Check:
    """Whether the place of the socket is private, and whether it is used."""
    try:
        path = host_address(model, backend).socket_path
        if not path.exists():
            return Check("socket", "ok", f"{path} (no engine runs now)")
        check_private(path)
    except DraftlineError as error:
        return Check("socket", "fail", error.code, str(error))
    return Check("socket", "ok", str(path))


def check_editors(which: Callable[[str], str | None], first_line: Callable[[list[str]], str]) -> Check:
    """Which editors are installed, and whether Neovim is recent enough."""
    found = [name for program, name in _EDITORS.items() if which(program)]
    if not found:
        return Check("editors", "warn", "none found on PATH", "Any client of the language server protocol will do.")
    if "Neovim" in found:
        line = first_line(["nvim", "--version"])
        numbers = re.search(r"(\d+)\.(\d+)", line)
        if numbers and tuple(map(int, numbers.groups())) < _OLDEST_NEOVIM:
            return Check("editors", "warn", ", ".join(found), f"{line} is too old; the plugin needs 0.11 or newer.")
    return Check("editors", "ok", ", ".join(found))


def cpu_flags() -> frozenset[str]:
    """Instruction sets of the processor; empty where the system does not list them."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return frozenset()
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    listed = (line.partition(":")[2].split() for line in lines if line.startswith(("flags", "Features")))
    return frozenset(next(listed, ()))


def _gpu_name() -> str:
    return _first_line(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"])


def _first_line(command: list[str]) -> str:
    """The first line that a program prints, "" if it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.partition("\n")[0].strip()
