"""The telemetry store: its tables, migrations, opening and deleting. No column has source text or a name of a file."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from completion.errors import StorageError
from completion.paths import machine_state_dir
from drafting.state_files import require_file, set_aside

_log = logging.getLogger(__name__)

# One script per version: a store of version n runs the scripts from n on. Released scripts are never edited.
# There is no index by time, because scanning a store of bounded size is faster than following an index.
MIGRATIONS = (
    """
    CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    INSERT INTO facts VALUES ('salt', lower(hex(randomblob(16))));
    CREATE TABLE suggestions (
        id TEXT NOT NULL UNIQUE,          -- the completion's id, random
        at REAL NOT NULL,                 -- when it was asked for, seconds since 1970
        language TEXT NOT NULL,
        document TEXT NOT NULL,           -- salted hash of the path
        model TEXT NOT NULL,
        variant TEXT NOT NULL,            -- settings that change what is suggested, for comparing
        invoked INTEGER NOT NULL,
        reason TEXT NOT NULL,             -- why nothing was answered, '' if something was
        detail TEXT NOT NULL,             -- which filter, which error
        stop_reason TEXT NOT NULL,
        suggestions INTEGER NOT NULL,     -- how many were offered
        characters INTEGER NOT NULL,      -- of the first
        lines INTEGER NOT NULL,
        wait_ms REAL NOT NULL,            -- debounce
        first_text_ms REAL NOT NULL,      -- from the request to the first text
        answer_ms REAL NOT NULL,          -- from the request to the answer
        queue_ms REAL NOT NULL,           -- the engine's own stages
        prompt_ms REAL NOT NULL,
        drafting_ms REAL NOT NULL,
        grammar_ms REAL NOT NULL,
        decode_ms REAL NOT NULL,
        prompt_tokens INTEGER NOT NULL,
        kept_tokens INTEGER NOT NULL,
        shifted_tokens INTEGER NOT NULL,
        computed_tokens INTEGER NOT NULL,
        generated_tokens INTEGER NOT NULL,
        steps INTEGER NOT NULL,
        drafted_tokens INTEGER NOT NULL,
        accepted_tokens INTEGER NOT NULL,
        accepted_by_drafter TEXT NOT NULL, -- JSON: drafter to tokens
        grammar_checks INTEGER NOT NULL,
        grammar_rejections INTEGER NOT NULL,
        grammar_off_reason TEXT NOT NULL,
        shown INTEGER NOT NULL DEFAULT 0,
        outcome TEXT NOT NULL DEFAULT '', -- accepted, partly, dismissed, typedOver, cursorMoved
        accepted_characters INTEGER NOT NULL DEFAULT 0,
        decided_at REAL
    );
    CREATE TABLE persistence (
        suggestion TEXT NOT NULL,
        after_s INTEGER NOT NULL,
        share REAL NOT NULL,              -- similarity of what stands there to what was accepted, 0 to 1
        characters INTEGER NOT NULL,      -- accepted characters that still stand there
        PRIMARY KEY (suggestion, after_s)
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE refusals (               -- requests that never reached the engine
        hour INTEGER NOT NULL,            -- hours since 1970
        language TEXT NOT NULL,
        reason TEXT NOT NULL,
        requests INTEGER NOT NULL,
        PRIMARY KEY (hour, language, reason)
    ) WITHOUT ROWID;
    CREATE TABLE written (                -- characters that were inserted into documents
        hour INTEGER NOT NULL,
        language TEXT NOT NULL,
        characters INTEGER NOT NULL,
        PRIMARY KEY (hour, language)
    ) WITHOUT ROWID;
    """,
    """
    ALTER TABLE suggestions ADD COLUMN experiment TEXT NOT NULL DEFAULT ''; -- name of the experiment that ran
    ALTER TABLE suggestions ADD COLUMN arm TEXT NOT NULL DEFAULT '';        -- the setting and its value, 'mode=line'
    """,
)

_TABLES = ("facts", "suggestions", "persistence", "refusals", "written")
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
"""Codes of errors about what is in a store; the last one says that a table or column is missing, or not missing yet."""
BUSY_TIMEOUT_S = 10.0
_PRIVATE = 0o600


def store_path() -> Path:
    """Return the path of the store."""
    return machine_state_dir() / "telemetry.sqlite3"


def usable_store_path() -> Path | None:
    """Return the path of the store, None if its folder cannot be made: then nothing is recorded."""
    try:
        return store_path()
    except StorageError as error:
        _log.warning("Nothing is recorded. %s", error)
        return None


def open_store(path: Path, timeout_s: float = BUSY_TIMEOUT_S) -> sqlite3.Connection:
    """Open the store, and create or migrate it if necessary. A statement waits `timeout_s` for another process at most.

    Raises:
        StorageError: The store cannot be opened, or a newer version of draftline has created it.
    """
    for file in files_of(path):
        require_file(file)
    try:
        return _open(path, timeout_s)
    except (OSError, sqlite3.Error) as error:
        if not _is_damaged(error):
            raise _unusable(path, error) from error
    for file in files_of(path):
        if file.exists():
            set_aside(file, "SQLite cannot read it")
    try:
        return _open(path, timeout_s)
    except (OSError, sqlite3.Error) as error:
        raise _unusable(path, error) from error


def _open(path: Path, timeout_s: float) -> sqlite3.Connection:
    _make_private(path)
    connection = sqlite3.connect(path, timeout=timeout_s, isolation_level=None)
    with contextlib.ExitStack() as on_failure:
        on_failure.callback(connection.close)
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # has an effect only before the first table exists
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        _migrate(connection, path)
        on_failure.pop_all()
    return connection


@contextlib.contextmanager
def read_store(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the store for a command, and close it.

    Raises:
        StorageError: The store cannot be opened, or the block cannot read it.
    """
    with contextlib.closing(open_store(path)) as store:
        try:
            yield store
        except sqlite3.Error as error:
            raise _unusable(path, error) from error


def files_of(path: Path) -> list[Path]:
    """Return the store and the files that SQLite keeps beside it while it is open."""
    return [Path(f"{path}{suffix}") for suffix in ("", "-wal", "-shm")]


def clear(path: Path) -> None:
    """Delete the store.

    Raises:
        StorageError: The store cannot be deleted.
    """
    try:
        for file in (*files_of(path), *path.parent.glob(f"{path.name}*.damaged")):
            file.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(
            f"The telemetry store {path} cannot be deleted ({error.strerror}). Check the permissions of its folder."
        ) from error


def _make_private(path: Path) -> None:
    """Let only the user read the store and its files. SQLite creates the others with the store's own mode."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, _PRIVATE))
    for file in files_of(path):
        with contextlib.suppress(FileNotFoundError):
            file.chmod(_PRIVATE)


def is_locked(error: BaseException) -> bool:
    """Return whether an error occurred because another process has locked the store; a later attempt may succeed."""
    return _code_of(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _is_damaged(error: BaseException) -> bool:
    return isinstance(error, sqlite3.Error) and _code_of(error) in _DAMAGED


def _code_of(error: BaseException) -> int:
    """Return SQLite's code of an error, without what extends it."""
    cause = error.__cause__ if isinstance(error, StorageError) else error
    return int(getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_OK)) & 0xFF


def _unusable(path: Path, error: Exception) -> StorageError:
    if is_locked(error):
        advice = "Another program has it open: close that program, or try again."
    elif _is_damaged(error):
        advice = "To delete it, run: draftline telemetry clear"
    else:
        advice = "Check the permissions of its folder, and the free space there."
    return StorageError(f"The telemetry store {path} cannot be used ({error}). {advice}")


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("BEGIN IMMEDIATE")  # one process migrates; others wait and then find the new version
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        connection.execute("ROLLBACK")
        raise StorageError(
            f"The telemetry store {path} has version {version}, which a newer draftline has created. Update draftline."
        )
    for script in MIGRATIONS[version:]:
        for statement in _statements(script):
            connection.execute(statement)
    for table in _TABLES:
        connection.execute(f"SELECT * FROM {table} LIMIT 0")  # noqa: S608 - names of our own tables
    connection.execute("INSERT OR IGNORE INTO facts VALUES ('salt', lower(hex(randomblob(16))))")
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    connection.execute("COMMIT")


def _statements(script: str) -> list[str]:
    """Return the statements of a script. `executescript` would commit the transaction that they belong to."""
    statements: list[str] = []
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            statements.append(statement)
            statement = ""
    return statements
