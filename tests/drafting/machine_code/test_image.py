"""Machine code of an earlier process does what numba's does, without numba; what does not fit is compiled as before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from completion.paths import module_environment
from drafting.machine_code.image import UNUSED_S, from_json, is_whole, note_use, read_image, shape_of, write_image
from drafting.machine_code.objects import IS_LINKABLE, ObjectError, link

pytestmark = pytest.mark.skipif(not IS_LINKABLE, reason="machine code is kept on Linux with x86 only")

_FUNCTIONS = """
import json, sys
from pathlib import Path
import numpy as np
from drafting.compiled import compiled, note_calls, use_image, write_noted
from drafting.candidate_pool import empty_pool, lay_out
from drafting.sources.ngram_index import NgramArrays, empty_arrays, find, link

role, image = sys.argv[1], Path(sys.argv[2])
if role == "write":
    note_calls()
elif role == "read":
    assert use_image(image)
elif role == "damaged":
    assert not use_image(image)
index = empty_arrays(64, 3)
index.tokens[:40] = np.tile(np.arange(8), 5)
link(index, 0, 40)
slots, lengths = np.zeros(8, np.int32), np.zeros(8, np.int32)
tail = np.arange(8, dtype=np.int64 if len(sys.argv) > 3 else np.int32)
count = find(index, tail, slots, lengths)
parts = [part.tolist() for part in lay_out(empty_pool(4), 2)]
if role == "write":
    write_noted(image)
print(json.dumps([count, slots.tolist(), lengths.tolist(), parts, "numba" in sys.modules]))
"""


def _run(role: str, image: Path, *more: str) -> list[object]:
    command = [sys.executable, "-P", "-c", _FUNCTIONS, role, str(image), *more]
    done = subprocess.run(command, capture_output=True, text=True, env=module_environment(), check=True)
    found: list[object] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an image of two functions."""
    path = tmp_path_factory.mktemp("image") / "kernels.image"
    _run("write", path)
    return path


def test_code_of_an_image_gives_what_numba_gives_without_numba(image: Path) -> None:
    *expected, with_numba = _run("plain", image)
    *found, imported = _run("read", image)

    assert found == expected
    assert expected[0] == 4
    assert (with_numba, imported) == (True, False)


def test_arguments_that_the_image_does_not_know_are_compiled_for(image: Path) -> None:
    *expected, _ = _run("plain", image, "other")
    *found, imported = _run("read", image, "other")

    assert found == expected
    assert imported


@pytest.mark.parametrize("change", [lambda content: content[:-1], lambda content: content[:-9] + b"x" + content[-8:]])
def test_a_damaged_image_is_not_used(image: Path, tmp_path: Path, change) -> None:
    damaged = tmp_path / "damaged"
    damaged.write_bytes(change(image.read_bytes()))

    assert not is_whole(damaged)
    assert read_image(damaged) is None
    assert _run("damaged", damaged)[0] == 4


def test_there_is_no_image_where_there_is_no_file(tmp_path: Path) -> None:
    assert not is_whole(tmp_path / "missing")
    assert read_image(tmp_path / "missing") is None


def test_an_empty_image_is_whole(tmp_path: Path) -> None:
    write_image(tmp_path / "empty", [])

    assert is_whole(tmp_path / "empty")


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"\x7fELF\x02\x01\x01" + bytes(11) + b"\x3e" + bytes(60)])
def test_what_is_no_object_code_is_refused(content: bytes) -> None:
    with pytest.raises(ObjectError):
        link([content], lambda _: 0, [{}])


def test_shapes_tell_apart_what_numba_tells_apart() -> None:
    whole = np.zeros((4, 4), np.float32)
    read_only = np.zeros((4, 4), np.float32)
    read_only.flags.writeable = False
    values = [whole, whole[:, :2], np.asfortranarray(np.ones((2, 3), np.float32)), read_only, whole.astype(np.int32)]
    shapes = [
        shape_of(value) for value in [*values, whole[0], 1, True, 1.0, np.int32(1), np.float32(1.0), (1, 2), (1,)]
    ]

    assert len(set(shapes)) == len(shapes)


def test_shapes_do_not_depend_on_sizes_and_survive_json() -> None:
    one_row, rows = np.zeros((1, 3), np.int32), np.zeros((5, 3), np.int32)

    assert shape_of(one_row) == shape_of(rows)
    assert from_json(json.loads(json.dumps(shape_of((rows, (1, 2.0)))))) == shape_of((rows, (1, 2.0)))


def test_images_that_nobody_has_used_for_a_month_are_deleted_when_another_is_used(tmp_path: Path) -> None:
    now_s = 2_000_000_000.0
    names = ("own.image", "used.image", "old.image", "old.partial", "old.txt")
    for name in names:
        write_image(tmp_path / name, [])
        age_s = UNUSED_S - 1 if name == "used.image" else UNUSED_S + 1
        os.utime(tmp_path / name, (now_s - age_s, now_s - age_s))

    note_use(tmp_path / "own.image", now_s)

    assert {path.name for path in tmp_path.iterdir()} == {"own.image", "used.image", "old.txt"}
    note_use(tmp_path / "used.image", now_s + UNUSED_S)
    assert (tmp_path / "own.image").exists()  # its use was noted
    note_use(tmp_path / "used.image", now_s + UNUSED_S + 1)
    assert not (tmp_path / "own.image").exists()


def test_an_image_that_a_process_uses_may_be_deleted(image: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.image"
    own.write_bytes(image.read_bytes())
    loaded = read_image(own)
    own.unlink()

    note_use(own, 2_000_000_000.0)

    assert loaded is not None
    assert not own.exists()
