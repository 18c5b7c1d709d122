"""Interface of the assistants of benchmarks.typing, and their common document with its log of requests."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import psutil

from benchmarks.typing.scripts import Script
from benchmarks.typing.tally import RequestRecord

_WORD = re.compile(r"\s*\S+?\b|\s*\S+")


@dataclass(frozen=True, slots=True)
class Offer:
    """A suggestion on the screen.

    Attributes:
        id: Name of the request that it comes from.
        text: Text that accepting inserts.
        replaced: Text after the cursor that accepting removes.
        since_s: Time since which it has been on the screen. Typing its start does not change this time.
    """

    id: str
    text: str
    replaced: str
    since_s: float

    @property
    def first_line(self) -> str:
        """Return the first line."""
        return self.text.partition("\n")[0]

    @property
    def first_word(self) -> str:
        """Return the first word or symbol, with the blanks before it."""
        found = _WORD.match(self.first_line)
        return found.group() if found else ""

    def first_line_is(self, rest: str) -> bool:
        """Return whether the first line completes the line of the cursor exactly."""
        line = rest.partition("\n")[0]
        return self.first_line in (line, line + self.replaced)

    def fits(self, part: str, rest: str, waiting: str = "") -> bool:
        """Return whether inserting this part of the text leaves nothing to correct.

        Args:
            part: The text, or its start, which replaces nothing.
            rest: Text that is typed next.
            waiting: Closers after the cursor that the editor added. They are in `rest` as well.
        """
        replaced = self.replaced if part == self.text else ""
        beyond = replaced[len(waiting) :]
        return part == rest + beyond if beyond else rest.startswith(part)

    def narrowed(self, typed: str, deleted: str = "", behind: str = "") -> Offer | None:
        """Return what is left on the screen after a key; None if the key contradicts the text or completes it.

        Args:
            typed: Text that the key writes.
            deleted: Text after the cursor that it takes the place of.
            behind: Text that the editor adds after the cursor.
        """
        left = self.text.removeprefix(typed)
        if len(left) == len(self.text) or not self.replaced.startswith(deleted):
            return None
        replaced = behind + self.replaced.removeprefix(deleted)
        letters = iter(left)
        if left == replaced or not all(character in letters for character in replaced):
            return None
        return replace(self, text=left, replaced=replaced)


class Assistant(Protocol):
    """An editor with a completion server."""

    name: str

    @property
    def text(self) -> str:
        """Return the document."""

    @property
    def cursor(self) -> int:
        """Return the cursor, in characters from the start."""

    @property
    def processes(self) -> Sequence[psutil.Process]:
        """Return all processes that run for this assistant only."""

    async def start(self) -> None:
        """Start all processes and wait until the model is loaded."""

    async def open(self, script: Script) -> None:
        """Open a file."""

    def move(self, offset: int) -> None:
        """Move the cursor."""

    def edit(self, start: int, deleted: int, inserted: str, behind: str = "") -> None:
        """Change the text. The cursor is after `inserted` and before `behind` afterwards."""

    def ask(self, expected: str | None) -> None:
        """Send a request as the editor does after a key.

        Args:
            expected: Text that will be typed next, for the log only. None after a typing error, which is not scored.
        """

    def offer(self) -> Offer | None:
        """Return the suggestion on the screen."""

    def accept(self, offer: Offer, length: int) -> None:
        """Insert the first `length` characters of a suggestion."""

    async def settle(self) -> None:
        """Wait until all requests have ended."""

    async def close(self) -> None:
        """Close the file."""

    def take_requests(self) -> list[RequestRecord]:
        """Return the requests since the last call, and reset the log."""

    @property
    def received_characters(self) -> int:
        """Return the number of suggested characters of this session, used or not."""

    async def stop(self) -> None:
        """End all processes of this assistant, also after a start that failed."""


class Buffer:
    """A document with a cursor and a log of requests."""

    def __init__(self) -> None:
        self.text = ""
        self.cursor = 0
        self.requests: list[RequestRecord] = []
        self.received_characters = 0

    def load(self, script: Script) -> None:
        """Load a file."""
        self.text, self.cursor, self.requests, self.received_characters = script.text, 0, [], 0

    def apply(self, start: int, deleted: int, inserted: str, behind: str = "") -> None:
        """Change the text and move the cursor between the two inserted parts."""
        self.text = self.text[:start] + inserted + behind + self.text[start + deleted :]
        self.cursor = start + len(inserted)

    def take_requests(self) -> list[RequestRecord]:
        """See `Assistant`."""
        taken, self.requests, self.received_characters = self.requests, [], 0
        return taken


def now_s() -> float:
    """Return the time by the clock of this benchmark."""
    return time.monotonic()
