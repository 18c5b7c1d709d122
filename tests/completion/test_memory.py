"""Memory that is returned, and code that still runs after it was."""

from __future__ import annotations

import ctypes
import mmap
import sys
import zlib
from pathlib import Path

import numpy as np
import psutil
import pytest

from completion.errors import ModelError
from completion.free_memory import free_bytes
from completion.memory import Held, drop_library, large_memory, mapped_spans, resident_bytes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_dropped_code_is_not_resident_and_runs_again() -> None:
    name = next(Path(line.split()[-1]).name for line in _maps() if "libz.so" in line or "zlib." in line)
    expected = zlib.compress(b"text" * 1000)
    before = _resident_code(name)

    drop_library(name)
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


@pytest.mark.parametrize(("used", "free"), [(2 << 30, 60 << 20), ((2 << 30) + (99 << 20), 0)])
def test_contents_of_files_that_a_container_keeps_in_memory_count_as_free(tmp_path: Path, used: int, free: int) -> None:
    (tmp_path / "memory.max").write_text(f"{2 << 30}\n")
    (tmp_path / "memory.current").write_text(f"{used}\n")
    (tmp_path / "memory.stat").write_text(f"anon 1\nfile 7\ninactive_file {40 << 20}\nactive_file {20 << 20}\n")

    assert free_bytes(tmp_path) == free


def test_only_pages_that_were_written_are_resident_and_each_byte_counts_once() -> None:
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 64 * page)
    array = np.frombuffer(memory, np.uint8)
    start = array.ctypes.data
    assert resident_bytes([(start, len(array))]) == 0

    memory[3 * page] = memory[4 * page] = memory[9 * page] = 1

    assert resident_bytes([(start, len(array))]) == 3 * page
    assert resident_bytes([(start, 4 * page), (start + 2 * page, 3 * page), (start, 6 * page)]) == 2 * page
    assert resident_bytes([(start + 3 * page + 100, 50)]) == 50
    assert resident_bytes([(start + 3 * page + 100, 2 * page)]) == 2 * page - 100
    assert resident_bytes([]) == 0


def test_what_two_owners_hold_is_the_sum() -> None:
    arrays = [np.ones(1000), np.ones((3, 7), np.int32)]

    held = Held.arrays(arrays[:1]) + Held(object_bytes=5, gpu_bytes=7) + Held.arrays(arrays[1:])

    assert resident_bytes(held.spans) == sum(array.nbytes for array in arrays)
    assert (held.object_bytes, held.gpu_bytes) == (5, 7)


def test_large_memory_becomes_resident_where_it_is_written() -> None:
    memory = large_memory(8 << 20)
    array = np.frombuffer(memory, np.uint8)
    span = array.ctypes.data, len(array)
    assert resident_bytes([span]) == 0

    memory[:] = b"x" * len(memory)

    assert resident_bytes([span]) == len(memory)


def test_more_memory_than_there_is_is_an_error_that_says_how_much_and_what_to_do() -> None:
    with pytest.raises(ModelError, match=r"no memory for 1,152,921,504,606,846,976 bytes\. Close other programs"):
        large_memory(1 << 60)


def test_a_dropped_library_keeps_what_the_loader_has_written() -> None:
    import tree_sitter_python
    from tree_sitter import Language, Parser

    parser = Parser(Language(tree_sitter_python.language()))
    tree = str(parser.parse(b"def f(): return 1").root_node)
    own = [span for span, _, path in mapped_spans() if "tree_sitter_python" in Path(path).parts]
    before = resident_bytes(own)

    drop_library("tree_sitter_python")
    after = resident_bytes(own)

    assert after < before / 2
    assert str(Parser(Language(tree_sitter_python.language())).parse(b"def f(): return 1").root_node) == tree


def test_an_unknown_library_is_left_alone() -> None:
    drop_library("libnothing.so")

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
