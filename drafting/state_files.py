"""Reads and replaces files of the cache and state folders: they save work, and nothing may fail for what is in one.

Whatever is wrong with a file (its kind, owner, size or content), it is set aside with a warning, and made anew.
"""

from __future__ import annotations

import logging
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

logger = logging.getLogger(__name__)

MOST_BYTES = 1 << 20
"""Maximum size of a file by default: several times that of the largest table of numbers."""
_ASIDE = ".damaged"
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_T = TypeVar("_T")


class StateFileError(Exception):
    """A file cannot be used; the message says why, without what is in it."""


def read_state(
    path: Path, parse: Callable[[bytes], _T], *, most_bytes: int = MOST_BYTES, is_code: bool = False
) -> _T | None:
    """Return what a file says; None if there is none, or none that can be used, which is then set aside.

    Args:
        path: The file.
        parse: Returns the value of the file's content. It may raise any exception.
        most_bytes: Maximum size of the file.
        is_code: Whether the content is run, so that nobody else may be able to write it.
    """
    try:
        return parse(_content(path, most_bytes, is_code=is_code))
    except (FileNotFoundError, NotADirectoryError):
        return None
    # The boundary to a disk's content, from which any exception may come.
    except Exception as error:  # noqa: BLE001
        why = str(error) if isinstance(error, StateFileError) else getattr(error, "strerror", None)
        set_aside(path, why or f"it is damaged: {type(error).__name__}")
        return None


def write_state(path: Path, content: bytes) -> None:
    """Replace a file, completely or not at all, and whatever is in its place or in that of its folder.

    Raises:
        OSError: The folder cannot be written, or the disk is full; the old file is unchanged.
    """
    if os.path.lexists(path.parent) and not path.parent.is_dir():
        set_aside(path.parent, "it is no folder")
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, unfinished = tempfile.mkstemp(".partial", path.name, path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        require_file(path)
        Path(unfinished).replace(path)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise


def require_file(path: Path) -> None:
    """Set aside what is in the place of a file that will be written, unless it is a file."""
    if os.path.lexists(path) and not path.is_file():
        set_aside(path, "it is no file")


def set_aside(path: Path, why: str) -> None:
    """Rename a file or folder that cannot be used, and warn. An earlier one of the name is deleted."""
    aside = path.with_name(path.name + _ASIDE)
    try:
        if aside.is_dir() and not aside.is_symlink():
            shutil.rmtree(aside)
        aside.unlink(missing_ok=True)
        path.rename(aside)
    except FileNotFoundError:  # another process was first
        return
    except OSError as error:
        logger.warning("%s cannot be used (%s) nor set aside (%s). Delete it.", path, why, error.strerror)
        return
    logger.warning("%s cannot be used (%s). It is set aside as %s and made anew.", path, why, aside.name)


def _content(path: Path, most_bytes: int, *, is_code: bool) -> bytes:
    # a pipe without a writer would keep the caller waiting
    with os.fdopen(
        os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb"
    ) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise StateFileError("it is no file")
        if found.st_size > most_bytes:
            raise StateFileError(f"it has {found.st_size} bytes, more than {most_bytes}")
        if sys.platform != "win32":  # there owner and mode bits have no meaning
            if found.st_uid not in (os.geteuid(), 0):
                raise StateFileError("another user owns it")
            if is_code and found.st_mode & _WRITABLE_BY_OTHERS:
                raise StateFileError("other users can write it")
        return file.read(most_bytes)
