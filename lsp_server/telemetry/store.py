"""What happened to every suggestion, kept in a local store: no text, no file names, no work on the request's path."""

from __future__ import annotations

import contextlib
import json
import logging
import operator
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path

from completion.errors import StorageError
from completion.request import Statistics
from lsp_server.telemetry.writer import Outcome, StoreWriter, Write

_log = logging.getLogger(__name__)

SIZE_LIMIT_BYTES = 64_000_000
_BATCH_ROWS = 10_000
_BATCH_WAIT_S = 0.2
_CLOSE_TIMEOUT_S = 30.0
_RETRY_S = 1.0
_MOST_KEPT = 20_000
"""Largest number of events that wait for a locked store; older ones are lost."""
_SECONDS_PER_HOUR = 3600

ACCEPTED = "accepted"
PARTLY_ACCEPTED = "partly"


@dataclass(frozen=True, slots=True)
class SuggestionRecord:
    """One row of `suggestions`; the columns are described in the schema. Times are in milliseconds.

    Attributes:
        document: URI of the document; the store gets a salted hash of it.
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
_OWN_COLUMNS = tuple(
    column.name for column in fields(SuggestionRecord) if column.name not in ("statistics", "document")
)
_COLUMNS = (*_OWN_COLUMNS, *_ENGINE_COLUMNS, "accepted_by_drafter", "document")
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


class Telemetry:
    """Takes events on the request's path, which costs a queue's put, and writes them on a thread of its own."""

    def __init__(
        self,
        path: Path,
        clock: Callable[[], float] = time.time,
        size_limit_bytes: int = SIZE_LIMIT_BYTES,
        on_committed: Callable[[int], None] = lambda _rows: None,
    ) -> None:
        """Start the writer, which opens the store with the first event: nothing here waits for another process.

        Args:
            path: The store; made where there is none.
            clock: Seconds since 1970.
            size_limit_bytes: When the store grows over this, its oldest rows are dropped.
            on_committed: Called on the writer's thread with the number of writes that are safe so far.
        """
        self._path = path
        self._clock = clock
        self._size_limit_bytes = size_limit_bytes
        self._on_committed = on_committed
        self._queue: queue.SimpleQueue[Write | threading.Event | None] = queue.SimpleQueue()
        self._in_a_hurry = threading.Event()
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
        self._thread.start()

    def save(self, record: SuggestionRecord) -> None:
        """A request was answered; a later answer of the same completion takes the place of the earlier."""
        values = (*_VALUES(record), json.dumps(record.statistics.accepted_by_drafter))
        self._queue.put(Write(_SAVE, values, record.document))

    def shown(self, id_: str) -> None:
        """A suggestion stood on the screen long enough to be read."""
        self._queue.put(Write(_SHOWN, (id_,)))

    def accepted(self, id_: str, characters: int, *, whole: bool) -> None:
        """A suggestion, or its first characters, was inserted; so it was also shown."""
        outcome = ACCEPTED if whole else PARTLY_ACCEPTED
        self._queue.put(Write(_ACCEPTED, (outcome, self._clock(), characters, id_)))

    def rejected(self, id_: str, how: str) -> None:
        """A suggestion was put away; one that was accepted in part stays so."""
        self._queue.put(Write(_REJECTED, (how, self._clock(), id_)))

    def persisted(self, id_: str, after_s: int, share: float, characters: int) -> None:
        """What remains of an accepted text after some time."""
        self._queue.put(Write(_PERSISTED, (id_, after_s, share, characters)))

    def refused(self, language: str, reason: str) -> None:
        """A request was answered with nothing before the engine was asked."""
        self._queue.put(Write(_REFUSED, (self._hour(), language, reason)))

    def written(self, language: str, characters: int) -> None:
        """Characters were inserted into a document, by hand or by completion."""
        self._queue.put(Write(_WRITTEN, (self._hour(), language, characters)))

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
        """Write what comes, until told to end; what a locked store does not take is tried again."""
        writer = StoreWriter(self._path, self._size_limit_bytes)
        kept: list[Write] = []
        waiting: list[threading.Event] = []
        committed, ended = 0, False
        while not (ended and self._queue.empty()):
            batch, events, ends = self._next_batch(_RETRY_S if kept else None)
            kept, ended = [*kept, *batch][-_MOST_KEPT:], ended or ends
            waiting += events
            outcome = writer.write(kept) if kept else Outcome.WRITTEN
            if outcome is Outcome.LOCKED:
                continue
            if kept and outcome is Outcome.WRITTEN:
                committed += len(kept)
                self._on_committed(committed)
            for event in waiting:
                event.set()
            kept, waiting = [], []
        if kept:
            _log.warning("%d events could not be recorded: another process locks %s.", len(kept), self._path)
        writer.close()

    def _next_batch(self, timeout_s: float | None = None) -> tuple[list[Write], list[threading.Event], bool]:
        """Wait for a write, then take what comes within a moment: few transactions, however fast the user types.

        A full batch waits for nothing, nor does what was there when somebody asked for haste.
        """
        try:
            items = [self._queue.get(timeout=timeout_s)]
        except queue.Empty:
            return [], [], False
        if self._queue.qsize() < _BATCH_ROWS:
            self._in_a_hurry.wait(_BATCH_WAIT_S)
        self._in_a_hurry.clear()  # first: who asks for haste from now on may be too late for this batch
        with contextlib.suppress(queue.Empty):
            while len(items) < _BATCH_ROWS:
                items.append(self._queue.get_nowait())
            self._in_a_hurry.set()  # for what is left
        batch = [item for item in items if isinstance(item, Write)]
        return batch, [item for item in items if isinstance(item, threading.Event)], None in items


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
