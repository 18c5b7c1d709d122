"""How much memory this process may still take, in a module that the language server can load: it imports no arrays."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

CONTAINER = Path("/sys/fs/cgroup")
"""Where Linux says what this process's control group may take and has taken."""


def free_bytes(container: Path = CONTAINER) -> int:
    """Return the memory that this process may still take, of the machine and of its container.

    As for the machine, contents of files that are kept in memory count as free: a system drops them when it needs room.
    """
    import psutil  # noqa: PLC0415 -- `benchmarks.gpu` runs without it

    free: int = psutil.virtual_memory().available
    with suppress(OSError, ValueError, LookupError):  # no container, or one without a limit
        limit, used = (int((container / name).read_text()) for name in ("memory.max", "memory.current"))
        parts = dict(line.split() for line in (container / "memory.stat").read_text().splitlines())
        of_files = int(parts["active_file"]) + int(parts["inactive_file"])
        free = min(free, max(0, limit - used + of_files))
    return free
