"""Reads the files of a workspace, whoever put them there: regular files, up to a size, without waiting, without links.

A clone may contain links to devices or to files outside it, and pipes that never end. Every file of a workspace is
read here, so that none of them can stop the server, fill its memory or lead out of the workspace.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_HAS_DIR_FD = os.open in os.supports_dir_fd
_FILE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NONBLOCK", 0)


def read_inside(root: Path, path: Path, most_bytes: int) -> bytes:
    """Read a file below `root`. Links in the way to `root` are followed, links below it are not.

    Raises:
        OSError: The file is not there, cannot be read, lies outside `root`, is a link or otherwise no regular file, or
            is larger than `most_bytes` (`errno.EFBIG`).
    """
    parts = path.relative_to(root).parts if path.is_relative_to(root) else ()
    if not parts or ".." in parts:
        raise OSError(errno.EINVAL, f"Is not inside {root}", str(path))
    if not _HAS_DIR_FD:
        return _read_without_dir_fd(root, path, most_bytes)
    folder = os.open(root, _FOLDER)
    try:
        for part in parts[:-1]:
            outer, folder = folder, os.open(part, _FOLDER | _NO_LINK, dir_fd=folder)
            os.close(outer)
        _check(os.stat(parts[-1], dir_fd=folder, follow_symlinks=False), path, most_bytes)
        return _read(os.open(parts[-1], _FILE | _NO_LINK, dir_fd=folder), path, most_bytes)
    finally:
        os.close(folder)


def read_named(path: Path, most_bytes: int) -> bytes:
    """Read a file that the user named. Links are followed.

    Raises:
        OSError: As in `read_inside`.
    """
    _check(path.stat(), path, most_bytes)  # before it is opened: a pipe's writer must not notice
    return _read(os.open(path, _FILE), path, most_bytes)


def _read(file: int, path: Path, most_bytes: int) -> bytes:
    """Read an open file and close it; it is checked again, because another may have taken its name."""
    try:
        _check(os.fstat(file), path, most_bytes)
        with open(file, "rb", closefd=False) as stream:
            content = stream.read(most_bytes + 1)
    finally:
        os.close(file)
    if len(content) > most_bytes:  # it grew, or its size is not known before it is read
        raise _too_large(path, most_bytes)
    return content


def _check(facts: os.stat_result, path: Path, most_bytes: int) -> None:
    if stat.S_ISLNK(facts.st_mode):
        raise OSError(errno.ELOOP, "Is a link, which is not followed", str(path))
    if not stat.S_ISREG(facts.st_mode):
        raise OSError(errno.EINVAL, "Is not a regular file", str(path))
    if facts.st_size > most_bytes:
        raise _too_large(path, most_bytes)


def _too_large(path: Path, most_bytes: int) -> OSError:
    return OSError(errno.EFBIG, f"Is larger than {most_bytes:,} bytes", str(path))


def _read_without_dir_fd(root: Path, path: Path, most_bytes: int) -> bytes:
    """Read a file where a system cannot open relative to a folder: links are looked for before, not while, opening."""
    if os.path.realpath(path) != str(Path(os.path.realpath(root), path.relative_to(root))):
        raise OSError(errno.ELOOP, "Is reached through a link, which is not followed", str(path))
    return read_named(path, most_bytes)
