"""Folders of converted models in the cache: one process makes each of them, and each is complete or absent."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypedDict

from completion.errors import StorageError
from completion.model.store.disk import sha256_of, size_of, storage_errors, sync_files
from completion.paths import cache_dir, shared_models_dir
from completion.progress import Progress

CONVERSION_VERSION = 3  # incremented when a conversion writes other bytes than before
GGUF_NAME = "model.gguf"
"""Name of a GGUF file that was joined from downloaded packages, in the folder of its conversion."""
SOURCE_NAME = "gguf.json"
"""Name of the file that says where a conversion's GGUF file is; see `gguf_source`."""
CHAT_TEMPLATE_NAME = "chat_template.jinja"
"""Name of the file with a model's chat template, as in transformers; empty if the model has none."""
WAIT_LIMIT_S = 1800.0  # longer than any conversion takes for its next byte
PARTIAL = ".partial"
"""End of the name of a folder that is being written."""
_RECORD = "source.json"
_MODELS, _PACKED = "models", "packed"  # folders of a cache
_NAME_LENGTH = 40  # of a model's name in those of its packed forms: paths are short on Windows


class FileRecord(TypedDict):
    """Size and checksum of a file when it was written."""

    size_bytes: int
    sha256: str


class Record(TypedDict):
    """Content of `source.json`."""

    conversion: int
    source: dict[str, str]
    files: dict[str, FileRecord]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a converted model comes from.

    Attributes:
        name: Short name; the folder is called `<name>-<first 12 digits of the digest>`.
        digest: Hexadecimal; two sources with one digest are the same model.
    """

    name: str
    digest: str

    @property
    def folder(self) -> Path:
        """Folder of the converted model: the shared one if that is complete, else the user's, which may not exist."""
        name = f"{self.name}-{self.digest[:12]}"
        shared = shared_models_dir()
        if shared is not None and is_complete(shared / _MODELS / name):
            return shared / _MODELS / name
        return models_dir() / name


def models_dir() -> Path:
    """Return the folder of all converted models; create it if necessary."""
    path = cache_dir() / _MODELS
    with storage_errors(path):
        path.mkdir(exist_ok=True)
    return path


def is_complete(folder: Path) -> bool:
    """Return whether a conversion of this version ended and every file still has its size."""
    record = read_record(folder)
    return (
        record is not None
        and record["conversion"] == CONVERSION_VERSION
        and all(size_of(folder / name) == entry["size_bytes"] for name, entry in record["files"].items())
    )


def damaged_files(folder: Path) -> list[str]:
    """Return the names of files that differ from what the conversion wrote. Reads all of them."""
    record = read_record(folder)
    if record is None:
        return [_RECORD]
    return [
        name
        for name, entry in record["files"].items()
        if size_of(folder / name) != entry["size_bytes"] or sha256_of(folder / name) != entry["sha256"]
    ]


def convert_once(source: Source, fill: Callable[[Path, Progress], str], progress: Progress) -> Path:
    """Convert a model unless its folder is complete. One process converts; the others wait for it.

    Args:
        source: What to convert.
        fill: Writes the converted files into the empty folder that it gets, and says where they come from.
        progress: Called by `fill`, or while waiting for another process.

    Returns:
        The folder.

    Raises:
        StorageError: The disk is full or read-only, or another process makes no progress for half an hour.
    """
    target = source.folder
    for unfinished in models_dir().glob(f"*{PARTIAL}/"):  # of processes that were killed
        delete_unless_held(unfinished)
    if is_complete(target):
        return target
    with storage_errors(target.parent), lock_held(target, progress):
        if not is_complete(target):  # the process that we waited for may have made it
            _make(source, target, fill, progress)
    return target


def remove(folder: Path, progress: Progress) -> int:
    """Delete a converted model and the weights packed from it; return the number of freed bytes."""
    with storage_errors(folder.parent), lock_held(folder, progress):
        doomed = [path for path in (folder, *packed_forms(folder, packed_dir())) if path.exists()]
        size = sum(map(tree_bytes, doomed))
        for path in doomed:
            shutil.rmtree(path)
    return size


def delete_superseded(folder: Path, origin: str) -> None:
    """Delete all conversions of a file but `folder`, and what was packed from them: the file has changed since."""
    for other in models_dir().glob("*/"):
        record = read_record(other)
        if other != folder and record is not None and record["source"].get("origin") == origin:
            for doomed in (other, *packed_forms(other, packed_dir())):
                delete_unless_held(doomed)


def delete_unless_held(folder: Path) -> None:
    """Delete a folder, unless another process holds its lock or the system keeps its files."""
    lock = folder.with_name(f"{folder.name.removesuffix(PARTIAL)}.lock")
    from filelock import FileLock  # noqa: PLC0415 - a GPU's benchmark reads records without it

    with suppress(OSError), FileLock(lock, timeout=0):
        shutil.rmtree(folder)


def packed_dir() -> Path:
    """Return the folder of all packed weights, which may not exist yet."""
    return cache_dir() / _PACKED


def shared_packed_dir(folder: Path) -> Path | None:
    """Return the folder of packed weights beside a shared model; None if the model is none."""
    shared = shared_models_dir()
    return shared / _PACKED if shared is not None and folder.parent == shared / _MODELS else None


def packed_name(folder: Path) -> str:
    """Return how the names of all folders start that are packed from a model's folder; its path is part of them."""
    place = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:8]
    return f"{folder.name[:_NAME_LENGTH]}-{place}-"


def packed_forms(folder: Path, packed: Path) -> dict[Path, int]:
    """Return the folders of weights that were packed from a model's folder, unfinished ones too, with their format."""
    name = re.compile(rf"{re.escape(packed_name(folder))}(\d+)-.*")
    return {path: int(found[1]) for path in packed.glob("*/") if (found := name.fullmatch(path.name))}


def partial_folder(folder: Path) -> Path:
    """Return the folder that becomes this one when it is complete."""
    return folder.with_name(f"{folder.name}{PARTIAL}")


def read_record(folder: Path) -> Record | None:
    """Return what a finished conversion recorded, None if there is no valid record."""
    try:
        record: Record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and {"conversion", "source", "files"} <= record.keys() else None


def _make(source: Source, target: Path, fill: Callable[[Path, Progress], str], progress: Progress) -> None:
    with made_whole(target) as partial:
        origin = fill(partial, progress)
        progress("Computing checksums", 1.0)
        _write_record(source, origin, partial)
        for stale in packed_forms(target, packed_dir()) if target.exists() else ():
            shutil.rmtree(stale)


@contextmanager
def made_whole(target: Path) -> Iterator[Path]:
    """Yield an empty folder that takes the place of `target` at the end, so that no process reads an unfinished one.

    The caller holds the target's lock.
    """
    partial = partial_folder(target)
    shutil.rmtree(partial, ignore_errors=True)  # from a process that was killed
    try:
        partial.mkdir()
        yield partial
        sync_files(partial)
        if target.exists():
            shutil.rmtree(target)
        os.replace(partial, target)  # noqa: PTH105 -- says that it is atomic
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def note_file(folder: Path, path: Path) -> None:
    """Record a file that was added to a converted model, or, if it is gone, that it was removed."""
    record = read_record(folder)
    if record is not None:
        files = {name: entry for name, entry in record["files"].items() if name != path.name}
        _write(folder, {**record, "files": files | ({path.name: _described(path)} if path.exists() else {})})


def _write_record(source: Source, origin: str, folder: Path) -> None:
    files = {path.name: _described(path) for path in sorted(folder.iterdir()) if path.name != SOURCE_NAME}
    _write(folder, {"conversion": CONVERSION_VERSION, "source": asdict(source) | {"origin": origin}, "files": files})


def _described(path: Path) -> FileRecord:
    return {"size_bytes": size_of(path), "sha256": sha256_of(path)}


def _write(folder: Path, record: Record) -> None:
    partial = folder / f"{_RECORD}{PARTIAL}"
    partial.write_text(json.dumps(record, indent=2), encoding="utf-8")
    partial.replace(folder / _RECORD)


@contextmanager
def lock_held(folder: Path, progress: Progress) -> Iterator[None]:
    """Hold the folder's lock; while another process has it, report that process's progress.

    Raises:
        StorageError: The other process has written nothing into the folder for half an hour.
    """
    from filelock import FileLock, Timeout  # noqa: PLC0415 - as above

    lock = FileLock(folder.with_name(f"{folder.name}.lock"))
    written, deadline = -1, 0.0
    while True:
        try:
            lock.acquire(timeout=0.5)
            break
        except Timeout as error:
            before, written = written, tree_bytes(folder) + tree_bytes(partial_folder(folder))
            if written != before:
                deadline = time.monotonic() + WAIT_LIMIT_S
            elif time.monotonic() > deadline:
                raise StorageError(
                    f"Another draftline process has held {lock.lock_file} for {WAIT_LIMIT_S / 60:.0f} minutes without "
                    "progress. End that process and try again."
                ) from error
            progress("Waiting for another draftline process that prepares the model", 0.0)
    try:
        yield
    finally:
        lock.release()


def tree_bytes(folder: Path) -> int:
    """Return the size of the files in a folder and below it, 0 if it does not exist."""
    return sum(max(0, size_of(Path(parent, name))) for parent, _, names in os.walk(folder) for name in names)
