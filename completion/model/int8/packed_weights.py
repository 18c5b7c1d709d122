"""Weights in the layout of the kernels: packed once into one file (`packing`), read into memory, or mapped at first."""

from __future__ import annotations

import json
import logging
import mmap
import os
import shutil
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from completion.errors import ModelDamagedError
from completion.memory import large_memory
from completion.model.architecture import Architecture
from completion.model.int8.packing import (
    BLOCK_BYTES,
    FORMAT,
    ROWS,
    Form,
    SumArray,
    files_digest,
    packed_target,
    sampled_sums_agree,
    sums_of,
    unsealed,
)
from completion.model.int8.worker_threads import usable_threads
from completion.model.store.apart import run_apart
from completion.model.store.converted_models import (
    PARTIAL,
    delete_unless_held,
    lock_held,
    made_whole,
    packed_forms,
    shared_packed_dir,
)
from completion.model.store.disk import storage_errors
from completion.progress import Progress, silent
from drafting.arrays import IntArray
from drafting.machine_code.image import UNUSED_S
from drafting.state_files import set_aside

logger = logging.getLogger(__name__)

_READ_BYTES = 1 << 25
_MOST_HEADER_BYTES = 1 << 26  # a number for each 64 kB of weights, and some for each section
Section = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class PackedWeights:
    """A packed model.

    Attributes:
        embeddings: Rows as bfloat16 bits [vocabulary, hidden].
        sections: Arrays by name: for each matrix "NAME.weights", "NAME.bias" with NAME "L.qkv",
            "L.attention_out", "L.up" (gate and up), "L.down" or "final.qkv", which is the head; or the sections of
            `block_sources`; and for each norm "NAME" and perhaps "NAME.bias", float32, with NAME "L.PART" (`families`)
            or "final.attention_norm".
        mapping: The mapped file; None if the weights were read into memory.
    """

    architecture: Architecture
    embeddings: FileRows | IntArray
    sections: dict[str, Section]
    folder: Path
    mapping: mmap.mmap | None = None

    @property
    def form(self) -> Form:
        """Form of the matrices."""
        return "int8" if "final.qkv.weights" in self.sections else "q4"

    def in_memory(self, room: mmap.mmap) -> PackedWeights:
        """Read mapped weights into `room`, of the mapping's size; meanwhile, what is read leaves the mapping's memory.

        Raises:
            ModelDamagedError: The file differs from what was written.
        """
        return replace(read_packed(self.folder, self.mapping, room), embeddings=self.embeddings)


class FileRows:
    """Rows of a matrix in a file. A mapped file would stay in memory with the neighbours of every row that was used."""

    def __init__(self, path: Path, offset: int, kind: str, shape: tuple[int, int]) -> None:
        self._file = path.open("rb", buffering=0)
        self._state = self._state_now()
        self._offset, self._kind, self._width = offset, np.dtype(kind), shape[1]
        self._lock = Lock()

    def __getitem__(self, rows: IntArray) -> Section:
        """Read rows.

        Returns:
            The shape of `rows` and the matrix's width.

        Raises:
            ModelDamagedError: The file was changed while it was in use.
        """
        found = np.empty((rows.size, self._width), self._kind)
        with self._lock:
            if self._state_now() != self._state:
                raise _changed(Path(self._file.name))
            for row, index in zip(found, rows.ravel().tolist(), strict=True):
                self._file.seek(self._offset + index * row.nbytes)
                if self._file.readinto(row.data) != row.nbytes:
                    raise _changed(Path(self._file.name))
        return found.reshape(*rows.shape, self._width)

    def _state_now(self) -> tuple[int, int]:
        found = os.fstat(self._file.fileno())
        return found.st_size, found.st_mtime_ns


def load_packed(
    folder: Path, cache_folder: Path, form: Form = "int8", *, mapped: bool = False, progress: Progress = silent
) -> PackedWeights:
    """Return the packed form of a model folder; pack it if the cache, a folder of packed models, has no undamaged one.

    A mapped file, where the system can map it, is there at once if another process has just read it, but steps take a
    fifth longer: see `PackedWeights.in_memory`.

    Raises:
        UnsupportedModelError: The kernels do not support the model's sizes, or its blocks.
        ModelError: The model's files are missing or damaged.
        StorageError: The packed file cannot be written, or another process makes no progress for half an hour.
    """
    shared = shared_packed_dir(folder)
    if shared is not None and (ready := packed_target(folder, shared, form)).is_dir():
        try:
            return read_packed(ready, mapped=mapped)
        except ModelDamagedError as damage:
            logger.warning("%s They are packed again, in your own cache folder.", damage)
    target = packed_target(folder, cache_folder, form)
    with storage_errors(cache_folder), lock_held(target, progress):
        if target.is_dir():
            try:
                found = read_packed(target, mapped=mapped)
            except ModelDamagedError as damage:
                logger.warning("%s They are packed again.", damage)
                shutil.rmtree(target)
            else:
                with suppress(OSError):  # see `_is_needless`
                    os.utime(_index(target))
                return found
        elif os.path.lexists(target):
            set_aside(target, "it is no folder")
        with made_whole(target) as unfinished:
            run_apart("completion.model.int8.packing:write_packed", folder, unfinished, form, progress=progress)
        _delete_stale(folder, target)
        return read_packed(target, mapped=mapped)


def _delete_stale(folder: Path, target: Path) -> None:
    """Delete a model's packed forms of older formats and files, and any that are unfinished, unused or of no folder.

    A form that another process holds or the system keeps (Windows, while it is mapped) stays until the next packing.
    """
    formats, files = packed_forms(folder, target.parent), files_digest(folder)
    for form in target.parent.glob("*/"):
        is_old = formats.get(form, FORMAT) < FORMAT or form.suffix == PARTIAL
        if is_old or _is_needless(form, files if form in formats else None):
            delete_unless_held(form)


def _is_needless(form: Path, files: str | None) -> bool:
    """Return whether no process has read a form for a month, or what it was packed from is gone or has changed.

    Each process that reads one notes that in the time of the index. A form is kept if its index tells nothing.
    `files` is the digest of the model's files as they are now, None for a form of another model.
    """
    try:
        if time.time() - _index(form).stat().st_mtime > UNUSED_S:
            return True
        header = _header(form)
    except (OSError, ModelDamagedError):
        return False
    is_orphan = not Path(header.get("folder", "/")).is_dir()
    return is_orphan or (files is not None and header.get("files", files) != files)


def read_packed(
    target: Path, former: mmap.mmap | None = None, room: mmap.mmap | None = None, *, mapped: bool = False
) -> PackedWeights:
    """Load a packed form, by mapping its file or by reading it into `room`, or into memory of its own.

    A former mapping of the file gives up its memory part by part.

    Raises:
        ModelDamagedError: It differs from what was written.
        ModelError: There is too little memory.
    """
    try:
        return _read_packed(target, former, room, mapped=mapped)
    except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError, OSError) as error:
        raise _changed(target) from error


def _read_packed(target: Path, former: mmap.mmap | None, room: mmap.mmap | None, *, mapped: bool) -> PackedWeights:
    header, path = _header(target), target / "weights.bin"
    sums, size = np.array(header["sums"], np.uint64), header["sections"][ROWS][0]
    if not path.is_file() or path.stat().st_size != len(sums) * BLOCK_BYTES:
        raise ModelDamagedError(f"The packed weights in {path} are truncated.")
    is_mapped = mapped and sys.platform == "linux"
    # With small pages, reading all weights in each step misses the page table's cache: a step took 15.4 ms from the
    # mapped file, 12.7 ms from memory of 2 MB pages.
    memory = _mapping(path, size) if is_mapped else room or large_memory(size)
    _check(path, memory, sums, (lambda *_: True) if is_mapped else partial(_read_part, path, former))
    if not sampled_sums_agree(path, sums, size // BLOCK_BYTES):
        raise _changed(path)
    embeddings = FileRows(path, *header["sections"].pop(ROWS))
    sections = {
        name: np.frombuffer(memory, np.dtype(kind), int(np.prod(shape)), offset).reshape(shape)
        for name, (offset, kind, shape) in header["sections"].items()
    }
    architecture = Architecture.from_json(header["architecture"])
    return PackedWeights(architecture, embeddings, sections, target, memory if is_mapped else None)


def _header(target: Path) -> dict[str, Any]:
    """Read `index.json`. In a shared folder it may be another user's; its seal says that it is as it was written.

    Raises:
        ModelDamagedError: It is missing, or differs from what was written.
    """
    index = _index(target)
    if not index.is_file():  # a pipe would keep the caller waiting
        raise _changed(index)
    try:
        with index.open("rb") as file:
            return dict(json.loads(unsealed(file.read(_MOST_HEADER_BYTES).decode("utf-8")) or ""))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise _changed(index) from error


def _index(form: Path) -> Path:
    return form / "index.json"


def _changed(path: Path) -> ModelDamagedError:
    return ModelDamagedError(f"The packed weights in {path} are damaged.")


def _mapping(path: Path, size: int) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)


def _check(path: Path, memory: mmap.mmap, sums: SumArray, read: Callable[[memoryview, int], bool]) -> None:
    """Check the sums of memory with the file's first bytes, after `read` has read each part from its offset on."""

    def is_right(start: int) -> bool:
        with view[start : start + _READ_BYTES] as part:
            first, count = start // BLOCK_BYTES, len(part) // BLOCK_BYTES
            return read(part, start) and bool(np.array_equal(sums_of(part), sums[first : first + count]))

    with memoryview(memory) as view, ThreadPoolExecutor(usable_threads()) as pool:
        agree = all(list(pool.map(is_right, range(0, len(memory), _READ_BYTES))))
    if not agree:
        raise _changed(path)


def _read_part(path: Path, former: mmap.mmap | None, view: memoryview, offset: int) -> bool:
    """Fill memory from a position in a file, and free that part of a former mapping; return whether the file has it."""
    if former is not None and sys.platform == "linux":
        former.madvise(mmap.MADV_DONTNEED, offset, len(view))
    with path.open("rb") as file:
        file.seek(offset)
        return file.readinto(view) == len(view)
