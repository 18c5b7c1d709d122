"""The checks of `draftline doctor` that need no engine. Each returns what it found and what to do about it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import psutil

from completion.backend import Backend
from completion.cancellation import CancelToken
from completion.errors import DraftlineError
from completion.free_memory import free_bytes
from completion.host.process.address import endpoint_at, normal_model
from completion.model.gpu_memory import FORMATS, Gpu, find_gpu
from completion.model.int8.kernels.processor import processor_features
from completion.model.store import model_list, model_store
from completion.model.store.converted_models import tree_bytes
from completion.model.store.hub import cached_folder
from completion.paths import cache_dir, version
from completion.progress import silent
from completion.remote.address import RemoteAddress
from lsp_server.engine.launcher import EngineOptions, HostLauncher

_GIB = 1 << 30
_BESIDE_WEIGHTS_BYTES = 210_000_000
"""Memory that engine, language server and forty documents take beside the weights: `python -m benchmarks.memory`
printed 692 MB with the default model, whose file has 491 MB."""
_ROUNDED_BACKENDS = ("auto", "int8", "q4")
"""Backends whose weights take about as much memory as a packaged model's file, or half of weights in 16 bits."""
_PREPARATION_DISK_BYTES = 3 * _GIB
"""Disk space for preparing a model that is no packaged one: as much as the default model takes."""
_MIN_NEOVIM = (0, 11)
_FAST_FLAGS = ("avx512vnni", "avxvnni", "amx-int8", "dotprod")
"""LLVM's names of instruction sets with fast integer products. Without them everything works, but more slowly."""
_VECTOR_FLAGS = ("avx2", "neon")
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
    """The result of one check: a row of the command's table."""

    name: str
    state: Literal["ok", "warn", "fail"]
    found: str
    advice: str = ""


def machine_checks(engine: EngineOptions, reason: str) -> list[Check]:
    """Run every check that needs no engine, in the order of a completion. `reason` says why its model serves."""
    model, backend, remote = engine.model, engine.backend, engine.remote
    editors = check_editors(shutil.which, _first_line)
    if remote.is_host:  # the checks of the engine connect to it
        return [editors]
    server = check_server(model, remote) if remote.url else []
    if remote.url and not remote.is_second:
        return [*server, check_socket(engine), editors]
    needed = memory_needed(model) if backend in _ROUNDED_BACKENDS else None
    return [
        *server,
        check_model(model, reason),
        check_memory(free_bytes(), needed, memory_taken(engine)),
        check_cpu(processor_features()),
        check_device(find_gpu(), backend, has_torch=find_spec("torch") is not None),
        check_disk(model, shutil.disk_usage(cache_dir()).free),
        check_socket(engine),
        editors,
    ]


def check_version() -> Check:
    """Report the versions of draftline and Python."""
    return Check("draftline", "ok", f"{version()}, Python {platform.python_version()}, {sys.executable}")


def check_settings(file: Path, problems: Sequence[str]) -> Check:
    """Report the user's own settings file, and which of its values are ignored."""
    if problems:
        return Check("settings", "warn", "\n".join(problems), f"Correct {file}. Its other settings count.")
    return Check("settings", "ok", str(file) if file.exists() else f"all defaults ({file} does not exist)")


def check_model(model: str, reason: str) -> Check:
    """Check that the model is there, or can be converted or downloaded. Say where it came from, and why this one."""
    packaged = model_store.packaged_model(model)
    if packaged is None:
        if (path := _place(model)) is not None:
            error = model_store.why_unusable(path)
            return Check("model", "fail" if error else "ok", f"{path}\n{reason}", str(error or ""))
        found = f"{model} is not on this machine\n{reason}"
        if error := model_store.why_missing(model):
            return Check("model", "fail", found, str(error))
        advice = f"draftline tries to download it at its first use. To do it now: draftline models get {model}"
        return Check("model", "warn", found, advice)
    status = model_list.packaged_status(packaged)
    came_from = f", from {status.origin}" if status.origin else ""
    where = f", in {status.where}" if status.where else ""
    found = f"{status.title}: {status.state}{came_from}{where}\n{reason}"
    if status.state is model_list.ModelState.OUTDATED:  # what it was made from may be gone
        return Check("model", "warn", found, status.advice)
    return Check("model", "ok" if status.state.is_usable else "fail", found, status.advice)


def _place(model: str) -> Path | None:
    """Return the file or folder of a model that is no packaged one; None if it is not on this machine.

    It is what the engine takes: a plain name is no folder of the working directory.
    """
    path = Path(normal_model(model))
    if path.is_absolute():
        return path if path.exists() else None
    return cached_folder(model)


def memory_needed(model: str) -> int | None:
    """Return the memory that the engine takes on a processor with a model, in bytes; None if its files are not here."""
    packaged = model_store.packaged_model(model)
    if packaged is not None:
        return packaged.size_bytes + _BESIDE_WEIGHTS_BYTES
    if (path := _place(model)) is None:
        return None
    if path.is_file():
        return path.stat().st_size + _BESIDE_WEIGHTS_BYTES
    weights = sum(file.stat().st_size for file in path.glob("*.safetensors"))
    return weights // 2 + _BESIDE_WEIGHTS_BYTES if weights else None  # 16 bits become 8


def memory_taken(engine: EngineOptions) -> int:
    """Return the memory that an engine has, in bytes; 0 if none runs."""
    taken = 0
    with suppress(DraftlineError, psutil.Error):  # no folder for its files, or it has just ended
        for process in HostLauncher(engine).processes():
            taken += process.memory_info().rss
    return taken


def check_memory(free: int, needed: int | None, taken: int = 0) -> Check:
    """Check that the model fits into the free memory and what its engine has.

    Args:
        free: Free memory, in bytes.
        needed: Memory that the engine takes with the model, in bytes; None if that is not known.
        taken: What of it the engine has, in bytes.
    """
    found = f"{free / _GIB:.1f} GiB free"
    if needed is None:
        return Check("memory", "ok", found)
    has = f"its engine has {taken / _GIB:.1f} GiB, " if taken else ""
    found = f"the model needs {needed / _GIB:.1f} GiB, {has}{found}"
    if free + taken >= needed:
        return Check("memory", "ok", found)
    advice = "Close other programs, or choose a smaller model."
    return Check("memory", "warn" if free + taken >= needed // 2 else "fail", found, advice)


def check_cpu(flags: frozenset[str]) -> Check:
    """Check that the processor has fast integer products."""
    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    fast = [flag for flag in _FAST_FLAGS if flag in flags]
    found = f"{cores} cores, {platform.machine()}" + (f", {', '.join(fast)}" if fast else "")
    if fast or not flags:
        return Check("processor", "ok", found)
    advice = "The processor has no vector instructions: a line takes several seconds."
    if any(flag in flags for flag in _VECTOR_FLAGS):
        advice = "The processor has no VNNI or AMX instructions: completions are slower."
    return Check("processor", "warn", found, advice)


def check_device(gpu: Gpu | None, backend: Backend, *, has_torch: bool) -> Check:
    """Report the GPU, which the engine tries if torch is installed and the backend runs on GPUs."""
    if gpu is None:
        return Check("device", "ok", "CPU (no GPU found that CUDA or Metal can use)")
    if backend not in FORMATS:
        return Check("device", "ok", f"CPU (the backend {backend} uses no GPU)")
    if has_torch:
        return Check("device", "ok", gpu.name)
    advice = "The processor runs the model. For the GPU: python -m pip install 'draftline[torch]'"
    return Check("device", "ok", f"CPU ({gpu.name} needs torch)", advice)


def check_disk(model: str, free_bytes: int) -> Check:
    """Check that the cache can be written, and that its disk has room for preparing the model.

    A lack of room fails only if the model must still be converted.
    """
    if not os.access(cache_dir(), os.W_OK):
        advice = "Make it writable, or set DRAFTLINE_CACHE_DIR to another folder."
        return Check("disk", "fail", f"{cache_dir()} cannot be written", advice)
    packaged = model_store.packaged_model(model)
    conversion = model_store.bytes_until_converted(packaged) if packaged else 0
    needed = max(conversion, packaged.size_bytes) if packaged else _PREPARATION_DISK_BYTES
    own_mb = tree_bytes(cache_dir()) / 1e6
    found = f"{free_bytes / _GIB:.1f} GiB free at {cache_dir()}, where draftline has {own_mb:,.0f} MB"
    if free_bytes >= needed:
        return Check("disk", "ok", found)
    takes = f"Preparing the model takes up to {needed / _GIB:.1f} GiB."
    advice = f"{takes} Free some space, or set DRAFTLINE_CACHE_DIR to a folder on another disk."
    return Check("disk", "fail" if conversion else "warn", found, advice)


def check_server(model: str, remote: RemoteAddress) -> list[Check]:
    """Check that the model server can be reached and has the tokens of the model, and time a round trip."""
    from completion.remote.engine import RemoteModel

    try:
        found = RemoteModel.connect(remote, model, silent, CancelToken())
        started = time.perf_counter()
        facts = found.server.facts(CancelToken())
    except DraftlineError as error:
        return [Check("server", "fail", error.code, str(error))]
    round_trip_ms = 1e3 * (time.perf_counter() - started)
    where = f"{facts.model} on {facts.software} at {found.address}, {round_trip_ms:.0f} ms a round trip"
    same = f"the server's {found.tokenizer.vocabulary_size:,} tokens are those of {found.folder}"
    return [Check("server", "ok", where), Check("tokenizer", "ok", same)]


def check_socket(engine: EngineOptions) -> Check:
    """Check that no other user can access the engine's socket, and report whether an engine listens on it."""
    try:
        path = HostLauncher(engine).address().endpoint_path
        endpoint = endpoint_at(path)
    except DraftlineError as error:
        return Check("socket", "fail", error.code, str(error))
    if endpoint is None or (endpoint.socket_path and not _listens(endpoint.socket_path)):
        return Check("socket", "ok", f"{path} (no engine is running)")
    return Check("socket", "ok", str(path) if endpoint.socket_path else f"{path} (TCP: {endpoint.url})")


def _listens(path: Path) -> bool:
    """Return whether somebody listens on a Unix socket; an engine that was killed leaves its own behind."""
    if sys.platform == "win32":
        return False
    else:  # where mypy looks for the system
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(os.fspath(path)) == 0


def check_editors(which: Callable[[str], str | None], first_line: Callable[[list[str]], str]) -> Check:
    """Check that an editor is installed and that Neovim is recent enough."""
    found = [name for program, name in _EDITORS.items() if which(program)]
    if not found:
        advice = "Any editor that speaks the Language Server Protocol works with draftline."
        return Check("editors", "warn", "none found on PATH", advice)
    if "Neovim" in found:
        line = first_line(["nvim", "--version"])
        numbers = re.search(r"(\d+)\.(\d+)", line)
        if numbers and tuple(map(int, numbers.groups())) < _MIN_NEOVIM:
            advice = f"{line} is too old for the plugin. Install Neovim 0.11 or newer."
            return Check("editors", "warn", ", ".join(found), advice)
    return Check("editors", "ok", ", ".join(found))


def _first_line(command: list[str]) -> str:
    """Return the first line that a command prints, "" if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.partition("\n")[0].strip()
