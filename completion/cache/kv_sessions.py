"""The KV sessions of all documents: who has one, and who is rounded or loses it when the memory is full."""

from __future__ import annotations

import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from completion.cache.kv_session import BACKGROUND_TOKENS, KVSession, NoteChunk, SessionSettings, TakeTurn
from completion.memory import Held
from completion.model.causal_model import CausalModel

IN_USE_S = 10.0
"""Time since a session's last request up to which its user is taken to be typing, in seconds."""


@dataclass(slots=True, eq=False)
class KVSessions:
    """The KV sessions of all documents, under one memory budget.

    Attributes:
        take_turn: Callback before a prompt is computed, in which other sessions may be opened.
        owner_of: Returns whose a document is. Where the memory is shared, somebody types in the last one of each owner.
    """

    model: CausalModel
    settings: SessionSettings
    note_chunk: NoteChunk = lambda _tokens, _seconds: None
    take_turn: TakeTurn = lambda _cancel: None
    clock: Callable[[], float] = time.monotonic
    owner_of: Callable[[str], str] = str
    _sessions: OrderedDict[str, KVSession] = field(default_factory=OrderedDict)
    _pins: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def pinned(self, document: str) -> Iterator[None]:
        """Keep a document's session as it is while a request uses it, whatever other documents need."""
        self._pins[document] += 1
        try:
            yield
        finally:
            self._pins[document] -= 1
            self._pins += Counter()  # without what is 0

    def open(self, document: str, *, in_background: bool = False) -> KVSession:
        """Return the session of a document, a new one if it has none; it becomes the most recently used one.

        In the background, its prompts give way at once to other requests, which do not need their tokens.
        """
        settings = self.settings
        if in_background:
            settings = replace(settings, chunk_tokens=BACKGROUND_TOKENS, abandons_chunks=True)
        session = self._sessions.pop(document, None)
        if session is None:
            session = KVSession(self.model, settings, self.note_chunk, self.take_turn)
        self._sessions[document] = session
        session.in_background, session.used_s = in_background, self.clock()
        for key, other in self._sessions.items():
            if session.used_s - other.used_s > IN_USE_S and key not in self._pins:
                other.cache.shrink()
        self._make_room()
        return session

    def tokens_each(self) -> float:
        """Return how many tokens of a prompt each typing user's document may have so that all of them fit.

        Without `shared`, there is no bound.
        """
        typing = sum(self._is_in_use(self._sessions[document]) for document in self._last_ones())
        held_bytes, tokens = self._held_bytes(), sum(len(each.tokens) for each in self._sessions.values())
        return self.settings.budget_bytes / typing / held_bytes * tokens if typing * held_bytes * tokens else math.inf

    def languages(self) -> set[str]:
        """Return the languages of the documents."""
        return {session.language for session in self._sessions.values()}

    def close(self, document: str) -> None:
        """Free the memory of a document's session."""
        self._sessions.pop(document, None)

    def held(self) -> Held:
        """Return where the memory of all sessions is. May be called on any thread."""
        return sum((session.cache.held() for session in list(self._sessions.values())), Held())

    def __len__(self) -> int:
        """Return the number of open sessions."""
        return len(self._sessions)

    def _make_room(self) -> None:
        """Round sessions other than the last until all fit, and close them where that is not enough.

        A session that nobody waits for is closed at once. Those of running requests stay, even beyond the budget.
        """
        while self._held_bytes() > self.settings.budget_bytes:
            *others, _ = self._sessions
            others = [each for each in others if each not in self._pins]
            if not others:
                return
            claim = partial(self._claim, self._last_ones())
            first, *_ = ordered = sorted(others, key=claim)  # of equal ones the least recently used first
            is_spare = self._sessions[first].in_background
            if is_spare or not any(self._sessions[each].compress() for each in ordered):
                del self._sessions[first]

    def _claim(self, last_ones: Collection[str], document: str) -> tuple[bool, bool, bool, int]:
        """Order sessions by who may lose one: nobody waits for it, its owner left it, nobody types, the largest."""
        session, is_last = self._sessions[document], document in last_ones
        in_use = is_last and self._is_in_use(session)
        return not session.in_background, is_last, in_use, -session.cache.size_bytes if in_use else 0

    def _last_ones(self) -> Collection[str]:
        """Return the last document of each owner, all documents if the memory is not shared."""
        found = [document for document, session in self._sessions.items() if not session.in_background]
        return {self.owner_of(document): document for document in found}.values() if self.settings.shared else found

    def _is_in_use(self, session: KVSession) -> bool:
        return self.settings.shared and self.clock() - session.used_s < IN_USE_S

    def _held_bytes(self) -> int:
        return sum(session.cache.size_bytes for session in self._sessions.values())
