"""Memory that is returned, and code that still runs after it was."""

from __future__ import annotations

import ctypes
import sys
import zlib
from pathlib import Path

import psutil
import pytest

from completion.memory import drop_code, free_bytes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_dropped_code_is_not_resident_and_runs_again() -> None:
    name = next(Path(line.split()[-1]).name for line in _maps() if "libz.so" in line or "zlib." in line)
    expected = zlib.compress(b"text" * 1000)
    before = _resident_code(name)

    drop_code(name)
    after = _resident_code(name)

    assert before > 0
    assert after == 0
    assert zlib.compress(b"text" * 1000) == expected


def test_free_memory_is_what_the_machine_and_the_container_have_left() -> None:
    free = free_bytes()

    assert 0 < free <= psutil.virtual_memory().total
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and limit.read_text().strip().isdecimal():
        assert free < int(limit.read_text())


def test_an_unknown_library_is_left_alone() -> None:
    drop_code("libnothing.so")

    assert ctypes.CDLL(None).getpid() > 0


def _maps() -> list[str]:
    return Path("/proc/self/maps").read_text().splitlines()


def _resident_code(library: str) -> int:
    """Return the kB of a library's code that are in memory."""
    found, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        words = line.split()
        if "-" in words[0] and not words[0].endswith(":"):
            inside = words[1] == "r-xp" and Path(words[-1]).name == library
        elif inside and words[0] == "Rss:":
            found += int(words[1])
    return found
