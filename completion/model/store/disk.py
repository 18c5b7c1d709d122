"""Writing large files: enough room beforehand, plain errors when there is none, checksums."""

from __future__ import annotations

import errno
import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from completion.errors import StorageError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_MOVE = "Set DRAFTLINE_CACHE_DIR to a folder with more room, or free some."


def require_free(folder: Path, needed_bytes: int) -> None:
    """Refuse to begin what cannot end.

    Raises:
        StorageError: The folder's disk has less room than that.
    """
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise StorageError(
            f"The disk of {folder} has {free / 1e6:,.0f} MB left, and {needed_bytes / 1e6:,.0f} MB are needed. {_MOVE}"
        )


@contextmanager
def storage_errors(folder: Path) -> Iterator[None]:
    """Turn the system's words for a full or read-only disk into ours.

    Raises:
        StorageError: Something below could not be written.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise StorageError(f"The disk of {folder} is full ({error.strerror}). {_MOVE}") from error
        if error.errno in _FORBIDDEN:
            raise StorageError(
                f"{error.filename or folder} cannot be written ({error.strerror}). "
                "Make it writable, or set DRAFTLINE_CACHE_DIR to another folder."
            ) from error
        raise


def sha256_of(path: Path) -> str:
    """Checksum of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
