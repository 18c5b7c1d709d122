"""What the server does for one document: its newest query, the generation that answers it, and the one in advance."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from lsp_server.suggesting.ahead import Ahead
from lsp_server.suggesting.generation import Generation
from lsp_server.suggesting.narrowing import Situation
from lsp_server.suggesting.query import Query

EDITOR_WAIT_S = 0.1
"""Maximum time from a key to its query, in seconds: VS Code waits for 50 ms before it asks. Later, it was no key."""


@dataclass(slots=True)
class Turn:
    """The processing of a document's newest query.

    Attributes:
        superseded: Set when a newer query arrives or the query's generation is discarded.
        waits: Whether the query waits for the engine.
    """

    superseded: asyncio.Event = field(default_factory=asyncio.Event)
    waits: bool = False

    async def is_superseded_within(self, wait_s: float) -> bool:
        """Wait for some seconds, or until it is superseded; return whether it is."""
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):  # in Python 3.11, `asyncio.wait_for` may lose a cancellation
                await self.superseded.wait()
        return self.superseded.is_set()  # it can be set in the moment in which the wait ends

    async def wait_for(self, ready: asyncio.Event) -> None:
        """Wait for the engine: until `ready` is set, or until the turn is superseded."""
        waits = [asyncio.ensure_future(event.wait()) for event in (ready, self.superseded)]
        self.waits = True
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.waits = False
            for wait in waits:
                wait.cancel()


@dataclass(slots=True)
class DocumentState:
    """The state of one document.

    Attributes:
        query: The newest query; None before the first, and after the text moved on to the generation in advance.
        generation: The generation that answers it.
        ahead: The generation in advance, for the text after the acceptance of the suggestion on the screen.
        changed_s: Time of the latest change of the text, by the completer's clock.
    """

    turn: Turn = field(default_factory=Turn)
    query: Query | None = None
    generation: Generation | None = None
    ahead: Ahead | None = None
    changed_s: float = -math.inf

    def left_s(self, wait_s: float, asked_s: float) -> float:
        """Return what is left, at the time of a query, of a wait that begins at its key."""
        waited_s = asked_s - self.changed_s
        return max(0.0, wait_s - waited_s) if waited_s <= EDITOR_WAIT_S else wait_s

    def next_turn(self) -> Turn:
        """End the current turn, so that its query is answered at once, and return a new one."""
        self.turn.superseded.set()
        self.turn = Turn()
        return self.turn

    def clear(self) -> None:
        """Cancel and drop the generation and the one in advance."""
        self.drop_ahead()
        if self.generation is not None:
            self.generation.cancel()
        self.generation = None

    def drop_ahead(self) -> None:
        """Cancel and drop the generation in advance."""
        if self.ahead is not None:
            self.ahead.cancel()
        self.ahead = None

    def drop_kept(self) -> None:
        """Cancel and drop what no query waits for."""
        self.drop_ahead()
        if not self.turn.waits:
            self.clear()

    def end_accepted(self, id_: str) -> None:
        """Drop an accepted suggestion, but not the one that was generated for the text after it, nor a newer query.

        A query that waits and has got no text of the accepted suggestion came after its edit.
        """
        current = self.generation
        if current is not None and current.follows == id_:
            return
        if self.ahead is not None and self.ahead.generation.follows != id_:
            self.drop_ahead()
        if current is None or current.id != id_:
            return
        got_text = current.streamed is not None and current.streamed[0] == self.query
        if got_text or not self.turn.waits:
            self.next_turn()
            current.cancel()
            self.generation = None

    def move_on(self, likely: Sequence[Situation]) -> bool:
        """Make the generation in advance the current one if it fits a likely cursor; return whether it did.

        Otherwise keep it only if the user can still get there by typing along.
        """
        ahead = self.ahead
        if ahead is None:
            return False
        taken = next((found for now in likely if (found := ahead.take(now)) is not None), None)
        if taken is not None:
            if self.generation is not None:
                self.generation.cancel()
            self.generation, self.ahead, self.query = taken, None, None
            self.next_turn()
            taken.hidden = False
        elif not any(ahead.is_ahead_of(now) for now in likely):
            self.drop_ahead()
        return taken is not None
