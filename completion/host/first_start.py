"""Compiles an installation's kernels in a process of its own: the compiler leaves 250 MB in the process that ran it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from completion.host.server import HostSettings
from completion.model.store.apart import run_apart
from completion.model.transformer import has_int8_instructions
from completion.progress import Progress
from completion.version import version

_PACKAGES = ("completion", "drafting")  # those with kernels


def compile_once(settings: HostSettings, progress: Progress, marker: Path | None = None) -> None:
    """Load the engine in a child process, unless this installation has done so. The child fills numba's cache.

    Backends that run in torch are left alone: their libraries take more memory than the compiler.

    Args:
        settings: The host's; the child loads the same model.
        progress: Called with what the child reports.
        marker: Empty file that says that it was done; None for the one beside numba's cache.

    Raises:
        DraftlineError: The model cannot be loaded.
    """
    if settings.backend not in {"auto", "int8", "q4"} or not has_int8_instructions():
        return
    marker = marker or _marker()
    if marker.exists():
        return
    run_apart(f"{__name__}:load_once", settings, progress=progress)
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.touch()


def load_once(settings: HostSettings, progress: Progress) -> None:
    """Load the engine as a host does, and drop it."""
    from completion.host.engine_loader import load_engine  # noqa: PLC0415 - it imports this module

    load_engine(settings, progress)


def _marker() -> Path:
    """Return a path that changes when numba would compile anew: with the source, the processor, and numba itself."""
    import numba  # noqa: PLC0415 - 0.3 s, which the host's loading thread may take
    from llvmlite.binding import get_host_cpu_name  # noqa: PLC0415

    from completion.model.int8.kernels.slot_moves import move_slots  # noqa: PLC0415

    root = Path(__file__).parents[2]
    sources = sorted(path for package in _PACKAGES for path in (root / package).rglob("*.py"))
    stamps = [(path.name, (stat := path.stat()).st_size, stat.st_mtime_ns) for path in sources]
    compiler = (version(), numba.__version__, get_host_cpu_name())
    digest = hashlib.sha256(repr((compiler, stamps)).encode()).hexdigest()[:16]
    return Path(move_slots.stats.cache_path) / f"compiled-{digest}"
