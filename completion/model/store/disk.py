"""Large files on disk: free space, errors of a full or read-only disk, checksums."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from completion.errors import StorageError
from completion.paths import writing_to

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Error numbers of a full disk: of the disk itself, of the user's share of it, of the largest file."""
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG}
_WITHOUT_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP}
_MAKE_ROOM = "Set DRAFTLINE_CACHE_DIR to a folder with more room, or free some."


def require_free(folder: Path, needed_bytes: int) -> None:
    """Check that the disk has enough free space before a long write begins.

    Raises:
        StorageError: The folder's disk has less free space than `needed_bytes`.
    """
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise StorageError(
            f"The disk of {folder} has {free / 1e6:,.0f} MB free; {needed_bytes / 1e6:,.0f} MB are needed. {_MAKE_ROOM}"
        )


@contextmanager
def storage_errors(folder: Path) -> Iterator[None]:
    """Turn an OSError of a disk that is full, read-only or without locks into a StorageError that says what to do.

    Raises:
        StorageError: The disk is full, a file cannot be written, or files cannot be locked.
    """
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise StorageError(f"The disk of {folder} is full ({error.strerror}). {_MAKE_ROOM}") from error
        if error.errno in _FORBIDDEN:
            with writing_to(folder, "DRAFTLINE_CACHE_DIR"):
                raise
        if error.errno in _WITHOUT_LOCKS:
            raise StorageError(
                f"The disk of {folder} has no locks for files ({error.strerror}). "
                "Set DRAFTLINE_CACHE_DIR to a folder on another disk."
            ) from error
        raise


def size_of(path: Path) -> int:
    """Return the size of a file in bytes, -1 if it does not exist."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_states(files: Iterable[Path]) -> list[tuple[str, int, int]]:
    """Return path, size and time of the last change of files: reading gigabytes at every start would take seconds."""
    return [(str(path.resolve()), (stat := path.stat()).st_size, stat.st_mtime_ns) for path in files]


def sync_files(folder: Path) -> None:
    """Flush a folder's files to the disk, so that a rename afterwards never shows them empty after a power failure.

    Raises:
        OSError: The disk cannot write them.
    """
    for path in [*folder.iterdir(), folder]:
        if os.name == "nt" and path.is_dir():  # Windows cannot open folders
            continue
        handle = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
