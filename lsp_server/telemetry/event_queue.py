"""Telemetry: queues events on suggestions and writes them to the local store on its own thread, without any text."""

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

from completion.request import Statistics
from lsp_server.telemetry.writer import StoreWriter, Write

_log = logging.getLogger(__name__)

SIZE_LIMIT_BYTES = 64_000_000
"""Size of the store above which its oldest rows are deleted."""
_BATCH_ROWS = 10_000
"""Maximum number of events in a transaction."""
_BATCH_WAIT_S = 0.2
"""Seconds for which the writer collects events for a transaction."""
_CLOSE_TIMEOUT_S = 30.0
"""Maximum seconds for the thread to write what is queued, which a locked store delays."""
_RETRY_S = 1.0
"""Seconds between attempts to write to a locked store."""
_MAX_PENDING = 20_000
"""Maximum number of events that wait for a locked store; older ones are dropped."""
_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True)
class SuggestionRecord:
    """One row of the table `suggestions`. `store.MIGRATIONS` describes the columns; times are in milliseconds.

    Attributes:
        document: URI of the document; the store gets a salted hash of it.
        statistics: The engine's statistics of the request.
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


# Fields of Statistics that have a column of their own.
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
    f"INSERT INTO suggestions ({', '.join(_COLUMNS)}) "  # noqa: S608 - names of our own fields
    f"VALUES ({'?, ' * (len(_COLUMNS) - 1)}digest(?)) ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS if name not in _KEPT_ON_CONFLICT)
)
_SHOWN = "UPDATE suggestions SET shown = 1 WHERE id = ?"
_ACCEPTED = (
    "UPDATE suggestions SET outcome = ?, decided_at = ?, shown = max(shown, ?), "
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
    """A recorder of events. Recording one only puts it into a queue; a thread writes them to the store.

    Attributes:
        is_on: Whether there is a store. Without one, nothing is recorded.
    """

    def __init__(
        self,
        path: Path | None,
        clock: Callable[[], float] = time.time,  # in seconds since 1970
        size_limit_bytes: int = SIZE_LIMIT_BYTES,
        on_committed: Callable[[int], None] = lambda _rows: None,
    ) -> None:
        """Start the writer's thread, which opens the store with the first event. This never waits for another process.

        The store at `path` is created if it does not exist; None records nothing. `on_committed` is called on the
        thread with the number of events committed so far.
        """
        self.is_on = path is not None
        self._clock = clock
        self._on_committed = on_committed
        self._queue: queue.SimpleQueue[Write | threading.Event | None] = queue.SimpleQueue()
        self._write_now = threading.Event()
        if path is not None:
            writing = path, StoreWriter(path, size_limit_bytes)
            self._thread = threading.Thread(target=self._run, args=writing, name="telemetry", daemon=True)
            self._thread.start()

    def save(self, record: SuggestionRecord) -> None:
        """Record the answer of a request. A later answer of the same completion replaces it."""
        drafters, uri = json.dumps(record.statistics.accepted_by_drafter), record.document.encode("utf-8", "replace")
        self._put(_SAVE, *_VALUES(record), drafters, uri)

    def shown(self, id_: str) -> None:
        """Record that a suggestion was on the screen long enough to be read."""
        self._put(_SHOWN, id_)

    def accepted(self, id_: str, characters: int, *, whole: bool, shown: bool = True) -> None:
        """Record that a suggestion, or its beginning, was accepted, and whether that tells that it was shown."""
        self._put(_ACCEPTED, "accepted" if whole else "partly", self._clock(), shown, characters, id_)

    def rejected(self, id_: str, how: str) -> None:
        """Record that a suggestion left the screen without acceptance. A partial acceptance stays the outcome."""
        self._put(_REJECTED, how, self._clock(), id_)

    def persisted(self, id_: str, after_s: int, share: float, characters: int) -> None:
        """Record how much of an accepted text remains at a checkpoint."""
        self._put(_PERSISTED, id_, after_s, share, characters)

    def refused(self, language: str, reason: str) -> None:
        """Count a request that was refused without asking the engine."""
        self._put(_REFUSED, self._hour(), language, reason)

    def written(self, language: str, characters: int) -> None:
        """Count characters that were inserted into a document, by typing or by accepting."""
        self._put(_WRITTEN, self._hour(), language, characters)

    def flush(self, timeout_s: float = 10.0) -> bool:
        """Wait until all events so far are written or have failed. Return whether that was in time."""
        done = threading.Event()
        self._queue.put(done)
        self._write_now.set()
        return done.wait(timeout_s)

    def close(self) -> None:
        """Write the remaining events and end the thread."""
        if self.is_on:
            self._queue.put(None)
            self._write_now.set()
            self._thread.join(timeout=_CLOSE_TIMEOUT_S)

    def _put(self, statement: str, *values: object) -> None:
        if self.is_on:
            self._queue.put((statement, values))

    def _hour(self) -> int:
        return int(self._clock() // _SECONDS_PER_HOUR)

    def _run(self, path: Path, writer: StoreWriter) -> None:
        """Write batches until `close`. Events that a locked store does not accept are written with the next batch."""
        pending: list[Write] = []
        waiting: list[threading.Event] = []
        committed, ended = 0, False
        while not (ended and self._queue.empty()):
            batch, events, ends = self._next_batch(_RETRY_S if pending else None)
            pending, ended = [*pending, *batch][-_MAX_PENDING:], ended or ends
            waiting += events
            written = writer.write(pending) if pending else 0
            if written is None:
                continue
            if written:
                committed += written
                self._on_committed(committed)
            for event in waiting:
                event.set()
            pending, waiting = [], []
        if pending:
            _log.warning("%d telemetry events are lost: another process locks %s.", len(pending), path)
        writer.close()

    def _next_batch(self, timeout_s: float | None = None) -> tuple[list[Write], list[threading.Event], bool]:
        """Wait for an event, then collect more for a short time, so that fast typing needs few transactions.

        A full batch does not wait, nor does one whose events were queued before `flush` or `close`.

        Returns:
            The events to write, the events to set afterwards, and whether to end.
        """
        try:
            items = [self._queue.get(timeout=timeout_s)]
        except queue.Empty:
            return [], [], False
        if self._queue.qsize() < _BATCH_ROWS:
            self._write_now.wait(_BATCH_WAIT_S)
        self._write_now.clear()  # before the queue is emptied: a later `flush` may miss this batch
        with contextlib.suppress(queue.Empty):
            while len(items) < _BATCH_ROWS:
                items.append(self._queue.get_nowait())
            self._write_now.set()  # for the items that remain in the queue
        batch = [item for item in items if isinstance(item, tuple)]
        return batch, [item for item in items if isinstance(item, threading.Event)], None in items
