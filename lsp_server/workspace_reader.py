"""Reads untrusted files of a workspace: only regular files up to a size, without following links.

A clone may contain links to devices or to files outside it, and pipes that never end. All files of a workspace are read
here, so that none of them blocks the server, fills its memory or exposes a file outside the workspace. Where a link
leads is found here, too.
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

Identity = tuple[int, int, int]
"""Time of the last change in nanoseconds, size in bytes and inode of a file: another text has another identity."""


def identity_of(path: Path) -> Identity | None:
    """Return the identity of a file, None without one. A link is not followed."""
    try:
        facts = path.lstat()
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_size, facts.st_ino


def read_inside(root: Path, path: Path, max_bytes: int) -> bytes:
    """Read a file below `root`. Links in the path of `root` are followed, links below `root` are not.

    Raises:
        OSError: The file does not exist, cannot be read, is outside `root`, is a link or another file that is not
            regular, or is larger than `max_bytes` (`errno.EFBIG`).
    """
    parts = path.relative_to(root).parts if path.is_relative_to(root) else ()
    if not parts or ".." in parts:
        raise OSError(errno.EINVAL, f"Is not inside {root}", str(path))
    if not _HAS_DIR_FD:
        return _read_without_dir_fd(root, path, max_bytes)
    folder = os.open(root, _FOLDER)
    try:
        for part in parts[:-1]:
            outer, folder = folder, os.open(part, _FOLDER | _NO_LINK, dir_fd=folder)
            os.close(outer)
        _check(os.stat(parts[-1], dir_fd=folder, follow_symlinks=False), path, max_bytes)
        return _read(os.open(parts[-1], _FILE | _NO_LINK, dir_fd=folder), path, max_bytes)
    finally:
        os.close(folder)


def read_text(root: Path, path: Path, max_bytes: int) -> str | None:
    """Return a text file below `root`; None if it cannot be read as `read_inside` does, is binary or not UTF-8."""
    try:
        text = read_inside(root, path, max_bytes).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return None if "\0" in text else text


def read_named(path: Path, max_bytes: int) -> bytes:
    """Read a file that the user named. Links are followed.

    Raises:
        OSError: The file does not exist, cannot be read, is not regular, or is larger than `max_bytes` (`errno.EFBIG`).
    """
    _check(path.stat(), path, max_bytes)  # before opening: opening a pipe would unblock its writer
    return _read(os.open(path, _FILE), path, max_bytes)


def real_path(path: Path) -> Path:
    """Return a path with its links resolved, as far as it exists.

    Linux refuses a path of more than 40 links, `os.path.realpath` follows them all. So a part of the path is resolved
    only if the system can open it.
    """
    for existing in (path, *path.parents):
        try:
            existing.stat()
        except (OSError, ValueError):
            continue
        return Path(os.path.realpath(existing), path.relative_to(existing))
    return path


def _read(file: int, path: Path, max_bytes: int) -> bytes:
    """Read an open file and close it. Check it again, because the path may have changed before it was opened."""
    try:
        _check(os.fstat(file), path, max_bytes)
        with open(file, "rb", closefd=False) as stream:
            content = stream.read(max_bytes + 1)
    finally:
        os.close(file)
    if len(content) > max_bytes:  # it grew, or the system reports size 0 as for files in /proc
        raise _too_large(path, max_bytes)
    return content


def _check(facts: os.stat_result, path: Path, max_bytes: int) -> None:
    if stat.S_ISLNK(facts.st_mode):
        raise OSError(errno.ELOOP, "Is a link, which is not followed", str(path))
    if not stat.S_ISREG(facts.st_mode):
        raise OSError(errno.EINVAL, "Is not a regular file", str(path))
    if facts.st_size > max_bytes:
        raise _too_large(path, max_bytes)


def _too_large(path: Path, max_bytes: int) -> OSError:
    return OSError(errno.EFBIG, f"Is larger than {max_bytes:,} bytes", str(path))


def _read_without_dir_fd(root: Path, path: Path, max_bytes: int) -> bytes:
    """Read a file on a system that cannot open relative to a folder. Links are looked for before the file is opened."""
    if os.path.realpath(path) != str(Path(os.path.realpath(root), path.relative_to(root))):
        raise OSError(errno.ELOOP, "Is reached through a link, which is not followed", str(path))
    return read_named(path, max_bytes)
