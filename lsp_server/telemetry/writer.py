"""Writes telemetry to the store, which another process may lock and which may lie on a full or read-only disk."""

from __future__ import annotations

import hashlib
import logging
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from completion.errors import StorageError
from lsp_server.telemetry.store import is_locked, open_store

_log = logging.getLogger(__name__)

_SIZE_CHECK_ROWS = 5000
"""Number of writes between two checks of the store's size. The first write is followed by a check, too."""
_DROPPED_SHARE = 0.2
"""Share of the suggestions that is deleted when the store exceeds its limit."""
_SECONDS_PER_HOUR = 3600
_LOCK_TIMEOUT_S = 1.0
"""Maximum seconds that an attempt to write waits for another process."""


Write = tuple[str, tuple[object, ...]]
"""An SQL statement with its values. It may call `digest(URI)`: the salted hash of a document's URI, "" for none."""


@dataclass(slots=True)
class StoreWriter:
    """A connection to the store, which the first batch opens. One thread uses it."""

    path: Path
    size_limit_bytes: int  # above which the oldest rows are deleted
    _connection: sqlite3.Connection | None = None
    _inode: int = 0
    _until_check: int = 0
    _last_warning: str = ""

    def write(self, batch: Sequence[Write]) -> int | None:
        """Write a batch in one transaction; return how many were written, None if another process locks the store.

        Other errors are logged and not raised: they must not disturb the editor. Then none were written.
        """
        try:
            connection = self._current()
            _in_one_transaction(connection, batch)
        except (StorageError, sqlite3.Error, ValueError, OverflowError, TypeError) as error:
            if is_locked(error):
                return None
            self._warn(len(batch), str(error))
            return 0
        self._until_check -= len(batch)
        if self._until_check < 0:
            self._until_check = _SIZE_CHECK_ROWS
            self._shrink(connection)
        return len(batch)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def _current(self) -> sqlite3.Connection:
        """Return the connection; a new one if the store is deleted: `draftline telemetry clear` does that meanwhile."""
        if self._connection is not None and self._inode != _inode_of(self.path):
            self._connection.close()
            self._connection = None
        return self._connection or self._open()

    def _open(self) -> sqlite3.Connection:
        connection = open_store(self.path, _LOCK_TIMEOUT_S)
        self._inode = _inode_of(self.path)
        (salt,) = connection.execute("SELECT value FROM facts WHERE name = 'salt'").fetchone()

        def digest(uri: bytes) -> str:  # without the store's salt, it does not reveal the URI
            return hashlib.sha256(salt.encode() + b"\0" + uri).hexdigest()[:16] if uri else ""

        connection.create_function("digest", 1, digest, deterministic=True)
        self._connection = connection
        return connection

    def _shrink(self, connection: sqlite3.Connection) -> None:
        """Shrink the store to its limit. If another process has it locked, leave that to the next check."""
        try:
            shrink(connection, self.size_limit_bytes)
        except sqlite3.Error as error:
            _log.info("The telemetry store could not be shrunk: %s", error)

    def _warn(self, count: int, reason: str) -> None:
        """Log why events are lost, unless the previous failure had the same reason."""
        if reason != self._last_warning:
            self._last_warning = reason
            _log.warning("%d telemetry events are lost: %s", count, reason)


def _inode_of(path: Path) -> int:
    """Return the number that the system gives a file; 0 if there is none at the path."""
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def _in_one_transaction(connection: sqlite3.Connection, statements: Sequence[Write]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement, values in statements:
            connection.execute(statement, values)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def shrink(connection: sqlite3.Connection, limit_bytes: int) -> None:
    """Delete the oldest rows of a store that exceeds its limit, and return the space to the file system."""
    if _size_bytes(connection) <= limit_bytes:
        return
    (rows,) = connection.execute("SELECT count(*) FROM suggestions").fetchone()
    cut = connection.execute(
        "SELECT at FROM suggestions ORDER BY at LIMIT 1 OFFSET ?", (int(rows * _DROPPED_SHARE),)
    ).fetchone()
    if cut is not None:
        hour = int(cut[0] // _SECONDS_PER_HOUR)
        _in_one_transaction(
            connection,
            [
                ("DELETE FROM suggestions WHERE at < ?", cut),
                ("DELETE FROM persistence WHERE suggestion NOT IN (SELECT id FROM suggestions)", ()),
                ("DELETE FROM refusals WHERE hour < ?", (hour,)),
                ("DELETE FROM written WHERE hour < ?", (hour,)),
            ],
        )
    connection.execute("PRAGMA incremental_vacuum").fetchall()


def _size_bytes(connection: sqlite3.Connection) -> int:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    return int((pages - free) * page_bytes)
