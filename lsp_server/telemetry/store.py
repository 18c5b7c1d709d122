"""What happened to every suggestion, kept in a local store: no text, no file names, no work on the request's path."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import operator
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path

from completion.errors import StorageError
from completion.request import Statistics
from lsp_server.telemetry.schema import open_store

_log = logging.getLogger(__name__)

SIZE_LIMIT_BYTES = 64_000_000
_BATCH_ROWS = 10_000
_BATCH_WAIT_S = 0.2
_CLOSE_TIMEOUT_S = 30.0
_CHECK_SIZE_EVERY = 5000
_DROPPED_SHARE = 0.2
_SECONDS_PER_HOUR = 3600

ACCEPTED = "accepted"
PARTLY_ACCEPTED = "partly"


@dataclass(frozen=True, slots=True)
class SuggestionRecord:
    """One row of `suggestions`; the columns are described in the schema. Times are in milliseconds.

    Attributes:
        statistics: What the engine did for it.
    """

    id: str
    at: float
    language: str = ""
    document: str = ""
    model: str = ""
    variant: str = ""
    experiment: str = ""
    arm: str = ""
    invoked: bool = False
    reason: str = ""
    detail: str = ""
    stop_reason: str = ""
    suggestions: int = 0
    characters: int = 0
    lines: int = 0
    wait_ms: float = 0.0
    first_text_ms: float = 0.0
    answer_ms: float = 0.0
    statistics: Statistics = field(default_factory=Statistics)


# Which of the engine's figures are kept, each in a column of its own.
_ENGINE_COLUMNS = (
    "queue_ms", "prompt_ms", "drafting_ms", "grammar_ms", "decode_ms",
    "prompt_tokens", "kept_tokens", "shifted_tokens", "computed_tokens", "generated_tokens", "steps",
    "drafted_tokens", "accepted_tokens", "grammar_checks", "grammar_rejections", "grammar_off_reason",
)  # fmt: skip
_OWN_COLUMNS = tuple(column.name for column in fields(SuggestionRecord) if column.name != "statistics")
_COLUMNS = (*_OWN_COLUMNS, *_ENGINE_COLUMNS, "accepted_by_drafter")
_VALUES = operator.attrgetter(*_OWN_COLUMNS, *(f"statistics.{name}" for name in _ENGINE_COLUMNS))
_KEPT_ON_CONFLICT = frozenset({"id", "at", "wait_ms", "invoked", "experiment", "arm"})
_SAVE = (
    f"INSERT INTO suggestions ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))}) "  # noqa: S608 - names of our own fields
    "ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS if name not in _KEPT_ON_CONFLICT)
)
_SHOWN = "UPDATE suggestions SET shown = 1 WHERE id = ?"
_ACCEPTED = (
    "UPDATE suggestions SET outcome = ?, decided_at = ?, shown = 1, "
    "accepted_characters = max(accepted_characters, ?) WHERE id = ? AND outcome != 'accepted'"
)
_REJECTED = "UPDATE suggestions SET outcome = ?, decided_at = ? WHERE id = ? AND outcome = ''"
_PERSISTED = "INSERT OR REPLACE INTO persistence VALUES (?, ?, ?, ?)"
_REFUSED = (
    "INSERT INTO refusals VALUES (?, ?, ?, 1) "
    "ON CONFLICT (hour, language, reason) DO UPDATE SET requests = requests + 1"
)
_WRITTEN = (
    "INSERT INTO written VALUES (?, ?, ?) "
    "ON CONFLICT (hour, language) DO UPDATE SET characters = characters + excluded.characters"
)


@dataclass(frozen=True, slots=True)
class _Write:
    statement: str
    values: tuple[object, ...]


class Telemetry:
    """Takes events on the request's path, which costs a queue's put, and writes them on a thread of its own."""

    def __init__(
        self,
        path: Path,
        clock: Callable[[], float] = time.time,
        size_limit_bytes: int = SIZE_LIMIT_BYTES,
        on_committed: Callable[[int], None] = lambda _rows: None,
    ) -> None:
        """Open the store and start the writer.

        Args:
            path: The store; made where there is none.
            clock: Seconds since 1970.
            size_limit_bytes: When the store grows over this, its oldest rows are dropped.
            on_committed: Called on the writer's thread with the number of writes that are safe so far.

        Raises:
            StorageError: The store cannot be used.
        """
        connection = open_store(path)
        (self._salt,) = connection.execute("SELECT value FROM facts WHERE name = 'salt'").fetchone()
        connection.close()
        self._path = path
        self._clock = clock
        self._size_limit_bytes = size_limit_bytes
        self._on_committed = on_committed
        self._queue: queue.SimpleQueue[_Write | threading.Event | None] = queue.SimpleQueue()
        self._in_a_hurry = threading.Event()
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
        self._thread.start()

    def document_key(self, uri: str) -> str:
        """A salted hash that stands for a document; without the store's salt it cannot be guessed back."""
        return hashlib.sha256(f"{self._salt}\0{uri}".encode("utf-8", "replace")).hexdigest()[:16]

    def save(self, record: SuggestionRecord) -> None:
        """A request was answered; a later answer of the same completion takes the place of the earlier."""
        self._queue.put(_Write(_SAVE, (*_VALUES(record), json.dumps(record.statistics.accepted_by_drafter))))

    def shown(self, id_: str) -> None:
        """A suggestion stood on the screen long enough to be read."""
        self._queue.put(_Write(_SHOWN, (id_,)))

    def accepted(self, id_: str, characters: int, *, whole: bool) -> None:
        """A suggestion, or its first characters, was inserted; so it was also shown."""
        outcome = ACCEPTED if whole else PARTLY_ACCEPTED
        self._queue.put(_Write(_ACCEPTED, (outcome, self._clock(), characters, id_)))

    def rejected(self, id_: str, how: str) -> None:
        """A suggestion was put away; one that was accepted in part stays so."""
        self._queue.put(_Write(_REJECTED, (how, self._clock(), id_)))

    def persisted(self, id_: str, after_s: int, share: float, characters: int) -> None:
        """What remains of an accepted text after some time."""
        self._queue.put(_Write(_PERSISTED, (id_, after_s, share, characters)))

    def refused(self, language: str, reason: str) -> None:
        """A request was answered with nothing before the engine was asked."""
        self._queue.put(_Write(_REFUSED, (self._hour(), language, reason)))

    def written(self, language: str, characters: int) -> None:
        """Characters were inserted into a document, by hand or by completion."""
        self._queue.put(_Write(_WRITTEN, (self._hour(), language, characters)))

    def flush(self, timeout_s: float = 10.0) -> bool:
        """Wait until everything so far is written; whether it was in time."""
        done = threading.Event()
        self._queue.put(done)
        self._in_a_hurry.set()
        return done.wait(timeout_s)

    def close(self) -> None:
        """Write what is left and end the thread."""
        self._queue.put(None)
        self._in_a_hurry.set()
        self._thread.join(timeout=_CLOSE_TIMEOUT_S)

    def _hour(self) -> int:
        return int(self._clock() // _SECONDS_PER_HOUR)

    def _run(self) -> None:
        connection = open_store(self._path)
        committed = 0
        try:
            while True:
                batch, waiting, ended = self._next_batch()
                if batch and self._write(connection, batch):
                    if (committed + len(batch)) // _CHECK_SIZE_EVERY != committed // _CHECK_SIZE_EVERY:
                        shrink(connection, self._size_limit_bytes)
                    committed += len(batch)
                    self._on_committed(committed)
                for event in waiting:
                    event.set()
                if ended and self._queue.empty():
                    return
        finally:
            connection.close()

    def _next_batch(self) -> tuple[list[_Write], list[threading.Event], bool]:
        """Wait for a write, then take what comes within a moment: few transactions, however fast the user types.

        A full batch waits for nothing, nor does what was there when somebody asked for haste.
        """
        items = [self._queue.get()]
        if self._queue.qsize() < _BATCH_ROWS:
            self._in_a_hurry.wait(_BATCH_WAIT_S)
        self._in_a_hurry.clear()  # first: who asks for haste from now on may be too late for this batch
        with contextlib.suppress(queue.Empty):
            while len(items) < _BATCH_ROWS:
                items.append(self._queue.get_nowait())
            self._in_a_hurry.set()  # for what is left
        batch = [item for item in items if isinstance(item, _Write)]
        return batch, [item for item in items if isinstance(item, threading.Event)], None in items

    def _write(self, connection: sqlite3.Connection, batch: list[_Write]) -> bool:
        """Write a batch in one transaction; a store that cannot be written to must not disturb the editor."""
        try:
            connection.execute("BEGIN IMMEDIATE")
            for write in batch:
                connection.execute(write.statement, write.values)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            _log.warning("%d events could not be recorded: %s", len(batch), error)
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            return False
        return True


def shrink(connection: sqlite3.Connection, limit_bytes: int) -> None:
    """Drop the oldest suggestions of a store that is over its limit, and give the space back."""
    if _size_bytes(connection) <= limit_bytes:
        return
    connection.execute("BEGIN IMMEDIATE")
    (rows,) = connection.execute("SELECT count(*) FROM suggestions").fetchone()
    cut = connection.execute(
        "SELECT at FROM suggestions ORDER BY at LIMIT 1 OFFSET ?", (int(rows * _DROPPED_SHARE),)
    ).fetchone()
    if cut is not None:
        connection.execute("DELETE FROM suggestions WHERE at < ?", cut)
        connection.execute("DELETE FROM persistence WHERE suggestion NOT IN (SELECT id FROM suggestions)")
        for table in ("refusals", "written"):
            connection.execute(f"DELETE FROM {table} WHERE hour < ?", (int(cut[0] // _SECONDS_PER_HOUR),))  # noqa: S608
    connection.execute("COMMIT")
    connection.execute("PRAGMA incremental_vacuum").fetchall()


def clear(path: Path) -> None:
    """Delete the store with everything in it.

    Raises:
        StorageError: It cannot be deleted.
    """
    try:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"The telemetry store {path} cannot be deleted ({error.strerror}).") from error


def _size_bytes(connection: sqlite3.Connection) -> int:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    return int((pages - free) * page_bytes)
