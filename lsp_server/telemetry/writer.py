"""Writes telemetry into the store; another process may have it locked, and a disk may be full or read-only."""

from __future__ import annotations

import hashlib
import logging
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from completion.errors import StorageError
from lsp_server.telemetry.schema import is_locked, open_store

_log = logging.getLogger(__name__)

_CHECK_SIZE_EVERY = 5000
_DROPPED_SHARE = 0.2
_SECONDS_PER_HOUR = 3600
_LOCK_TIMEOUT_S = 1.0
"""Time that one attempt waits for another process; the events are kept for the next one."""


@dataclass(frozen=True, slots=True)
class Write:
    """One statement with its values.

    Attributes:
        document: URI of a document, whose salted hash becomes the last value; None for statements without one.
    """

    statement: str
    values: tuple[object, ...]
    document: str | None = None


class Outcome(Enum):
    """What became of a batch."""

    WRITTEN = auto()
    LOCKED = auto()
    FAILED = auto()


class StoreWriter:
    """A connection to the store, opened with the first batch; used by one thread.

    Args:
        path: The store; made where there is none.
        size_limit_bytes: When the store grows over this, its oldest rows are dropped.
    """

    def __init__(self, path: Path, size_limit_bytes: int) -> None:
        self._path = path
        self._size_limit_bytes = size_limit_bytes
        self._connection: sqlite3.Connection | None = None
        self._salt = ""
        self._committed = 0
        self._complaint = ""

    def write(self, batch: Sequence[Write]) -> Outcome:
        """Write a batch in one transaction; no failure of a store may disturb the editor."""
        try:
            connection = self._connection or self._open()
            _in_one_transaction(connection, [(one.statement, self._values(one)) for one in batch])
        except (StorageError, sqlite3.Error, ValueError, OverflowError) as error:
            if is_locked(error):
                return Outcome.LOCKED
            self._complain(len(batch), str(error))
            return Outcome.FAILED
        before, self._committed = self._committed, self._committed + len(batch)
        if before // _CHECK_SIZE_EVERY != self._committed // _CHECK_SIZE_EVERY:
            self._shrink(connection)
        return Outcome.WRITTEN

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def _open(self) -> sqlite3.Connection:
        connection = open_store(self._path, _LOCK_TIMEOUT_S)
        (self._salt,) = connection.execute("SELECT value FROM facts WHERE name = 'salt'").fetchone()
        self._connection = connection
        return connection

    def _shrink(self, connection: sqlite3.Connection) -> None:
        """Keep the store within its limit; where another process has it locked, the next check does so."""
        try:
            shrink(connection, self._size_limit_bytes)
        except sqlite3.Error as error:
            _log.info("The telemetry store could not be made smaller: %s", error)

    def _values(self, write: Write) -> tuple[object, ...]:
        """The values to bind; without the store's salt a document's hash cannot be guessed back."""
        if write.document is None:
            return write.values
        salted = f"{self._salt}\0{write.document}".encode("utf-8", "replace")
        return (*write.values, hashlib.sha256(salted).hexdigest()[:16] if write.document else "")

    def _complain(self, count: int, reason: str) -> None:
        if reason != self._complaint:
            self._complaint = reason
            _log.warning("%d events could not be recorded: %s", count, reason)


def _in_one_transaction(connection: sqlite3.Connection, statements: Sequence[tuple[str, tuple[object, ...]]]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement, values in statements:
            connection.execute(statement, values)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def shrink(connection: sqlite3.Connection, limit_bytes: int) -> None:
    """Drop the oldest suggestions of a store that is over its limit, and give the space back."""
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
