"""Records what happens to suggestions: one record for each, and how much of the accepted text remains."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary, WeakSet

from completion.request import Statistics
from lsp_server.documents.documents import Document
from lsp_server.documents.text_lines import Edit, Place
from lsp_server.empty_reason import EmptyReason
from lsp_server.settings.table import COMPARABLE, DEFAULTS, Settings
from lsp_server.suggesting.generation import Generation
from lsp_server.suggesting.query import Answer, Query
from lsp_server.telemetry.event_queue import SuggestionRecord, Telemetry
from lsp_server.telemetry.persistence import PersistenceTracker

_MAX_WRITTEN_CHARACTERS = 2000
"""Maximum length of an insertion that counts as writing. A longer one is a reload, a paste or a formatter's edit."""

_QUERY_ENDED = frozenset(
    {
        EmptyReason.SUPERSEDED,
        EmptyReason.OUTDATED,
        EmptyReason.CANCELLED,
        EmptyReason.MANUAL,
        EmptyReason.SNOOZED,
    }
)
"""Empty reasons that say why a query waits no longer, not what became of its suggestion."""

_EDIT_DELAY_S = 2.0
"""Maximum seconds from the report of an acceptance to its edit."""


@dataclass(frozen=True, slots=True)
class _Announced:
    """An acceptance whose edit has not arrived yet."""

    id: str
    place: Place
    text: str
    until: float


class SuggestionRecorder:
    """Records the events on suggestions while telemetry is on, and does nothing while it is off.

    Args:
        model: Returns the name of the current model.
        clock: Monotonic clock, in seconds; the same as the completer's.
        wall_clock: Clock in seconds since 1970.
    """

    def __init__(
        self, model: Callable[[], str], clock: Callable[[], float], wall_clock: Callable[[], float] = time.time
    ) -> None:
        self._model = model
        self._clock = clock
        self._wall_clock = wall_clock
        self.telemetry = Telemetry(None)
        self._persistence = PersistenceTracker(lambda remains: self.telemetry.persisted(*remains), clock)
        self._announced: dict[str, list[_Announced]] = {}
        self._asked: WeakKeyDictionary[Generation, Query] = WeakKeyDictionary()  # the first query that got text of it
        self._answered: WeakSet[Generation] = WeakSet()  # a query got its text as the answer
        self._timer: asyncio.TimerHandle | None = None

    async def switch(self, path: Path | None) -> None:
        """Record into the store at a path; None stops recording."""
        await self.close()
        self.telemetry = Telemetry(path, self._wall_clock)

    async def close(self) -> None:
        """Write the remaining events and stop recording."""
        if self._timer is not None:
            self._timer.cancel()
        self._announced.clear()
        self._persistence.forget()
        telemetry, self.telemetry = self.telemetry, Telemetry(None)
        await asyncio.to_thread(telemetry.close)

    def streamed(self, query: Query, answer: Answer) -> None:
        """Record what a query has got so far: the client may report what becomes of it before the answer."""
        generation = answer.generation
        if self.telemetry.is_on and generation is not None and generation not in self._answered:
            self._save(query, answer, generation)

    def answered(self, query: Query, answer: Answer) -> None:
        """Record an answer to a query.

        Once a query has got text of a generation, an answer says nothing more of it if the query only ended. After an
        answer with text, those of other queries are not recorded: they repeat what the user has not typed yet.
        """
        generation = answer.generation
        if generation is None:
            self.telemetry.refused(query.document.language, answer.reason or "")
        if generation is None or not self.telemetry.is_on:
            return
        is_told = generation in self._answered or (generation in self._asked and answer.reason in _QUERY_ENDED)
        if not is_told:
            self._save(query, answer, generation)
        if answer.remainders:
            self._answered.add(generation)

    def accepted(
        self, document: Document, place: Place, id_: str, text: str, *, inserted: int, whole: bool, shown: bool
    ) -> None:
        """Record the acceptance of a text at a position. Its edit may arrive shortly before or after.

        Acceptances have `inserted` so many characters of the suggestion, which the user has not typed. It is `whole`
        if nothing of it is left, and counts as `shown` if the client reports what it shows.
        """
        if not self.telemetry.is_on:
            return
        self.telemetry.accepted(id_, inserted, whole=whole, shown=shown)
        if not self._persistence.accepted(id_, document, place, text):
            announced = _Announced(id_, place, text, self._clock() + _EDIT_DELAY_S)
            self._announced.setdefault(document.uri, []).append(announced)
        self._wait_for_checkpoint()

    def text_changed(self, document: Document, edits: Sequence[Edit]) -> None:
        """Follow accepted texts through the edits of a document, and count the written characters."""
        if not self.telemetry.is_on:
            return
        self._persistence.changed(document, edits)
        for announced in self._announced.pop(document.uri, ()):
            if self._clock() <= announced.until:
                self._persistence.accepted(announced.id, document, announced.place, announced.text)
                self._wait_for_checkpoint()
        inserted = sum(len(edit.inserted) for edit in edits if len(edit.inserted) <= _MAX_WRITTEN_CHARACTERS)
        if inserted:
            self.telemetry.written(document.language, inserted)

    def document_closed(self, document: Document) -> None:
        """Record the remains of accepted text in a document that was closed."""
        self._persistence.closed(document)
        self._announced.pop(document.uri, None)

    def _wait_for_checkpoint(self) -> None:
        due = self._persistence.next_due()
        if self._timer is not None:
            self._timer.cancel()
        if due is not None:
            delay = max(0.0, due - self._clock())
            self._timer = asyncio.get_running_loop().call_later(delay, self.checkpoint)

    def checkpoint(self) -> None:
        """Record the remains at every checkpoint that is due, and wait for the next one."""
        self._persistence.tick()
        self._wait_for_checkpoint()

    def _save(self, query: Query, answer: Answer, generation: Generation) -> None:
        if answer.remainders:
            self._asked.setdefault(generation, query)
        self.telemetry.save(self._record(query, answer, generation))

    def _record(self, query: Query, answer: Answer, generation: Generation) -> SuggestionRecord:
        """Return the record of an answer.

        Its times count from the first query that got text: later ones find the text ready.
        """
        now, asked = self._clock(), self._asked.get(generation, query)
        first_text = answer.remainders[0].text if answer.remainders else ""
        last = generation.last
        return SuggestionRecord(
            id=generation.id,
            at=self._wall_clock() - (now - asked.received),
            language=query.document.language,
            document=query.document.uri,
            model=self._model(),
            variant=variant_of(query.settings),
            experiment=query.arm.experiment,
            arm=query.arm.side,
            invoked=query.invoked,
            reason=answer.reason or "",
            detail=answer.detail,
            stop_reason=(last.stop_reason or "") if last else "",
            suggestions=len(answer.remainders),
            characters=len(first_text),
            lines=first_text.count("\n") + bool(first_text),
            wait_ms=1000 * max(0.0, generation.started_s - asked.received),
            first_text_ms=1000 * max(0.0, (generation.first_text_s or now) - asked.received),
            answer_ms=1000 * (now - asked.received),
            statistics=(last and last.statistics) or Statistics(),
        )


def variant_of(settings: Settings) -> str:
    """Return the comparable settings that differ from their defaults, as "name=value,name=value"."""
    changed = [name for name in COMPARABLE if getattr(settings, name) != getattr(DEFAULTS, name)]
    return ",".join(f"{name}={getattr(settings, name)}" for name in changed)
