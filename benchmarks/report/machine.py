"""What a report says about where its figures are from: commit, processor, memory, versions. No name of a host."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from completion.model.int8.kernels.processor import processor_features

ROOT = Path(__file__).resolve().parents[2]
_MEASURED = ("completion", "lsp_server", "drafting", "benchmarks", "ide_clients")
"""Folders whose uncommitted changes make figures those of no commit."""
_PACKAGES = ("numpy", "numba", "llama-cpp-python")
_SHOWN = {"avx2": "AVX2", "avx512vnni": "AVX-512 VNNI", "avxvnni": "AVX-VNNI", "amx-int8": "AMX"}
"""Instruction sets that decide how the model is computed, by their names in `processor_features`."""


def commit() -> str:
    """Return the commit of the checkout, with `+changes` if the measured code has changes that no commit has.

    Raises:
        SystemExit: The folder is no checkout of git, or git is not installed.
    """
    try:
        name = _git("rev-parse", "--short=12", "HEAD")
        changed = _git("status", "--porcelain", "--", *_MEASURED)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(
            f"git does not tell the commit: {error}. Run the report in a clone of the repository."
        ) from error
    return f"{name}+changes" if changed else name


def machine() -> dict[str, str | int]:
    """Return the processor, the number of cores that may be used, and the memory in GB."""
    features = processor_features()
    shown = [name for feature, name in _SHOWN.items() if feature in features]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else psutil.cpu_count() or 1
    return {
        "processor": ", ".join([_processor_name(), *shown]),
        "cores": cores,
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
        "system": platform.system(),
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that figures depend on, as far as they are installed."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _processor_name() -> str:
    for line in _lines(Path("/proc/cpuinfo")):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()
