"""What benchmarks.typing needs of an assistant, and what ours and theirs share: the text and the log of requests."""

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
    """A text that stands at the cursor.

    Attributes:
        id: Names the request that it comes from.
        text: What would be inserted.
        replaced: The text behind the cursor that it takes the place of.
        since_s: Since when it, or what it is the rest of, has stood there.
    """

    id: str
    text: str
    replaced: str
    since_s: float

    @property
    def first_line(self) -> str:
        """Up to the first line's end."""
        return self.text.partition("\n")[0]

    @property
    def first_word(self) -> str:
        """The first word or sign with the blanks before it."""
        found = _WORD.match(self.first_line)
        return found.group() if found else ""

    def first_line_is(self, rest: str) -> bool:
        """Whether the first line is exactly what the line still lacks."""
        line = rest.partition("\n")[0]
        return self.first_line in (line, line + self.replaced)

    def fits(self, part: str, rest: str) -> bool:
        """Whether inserting a part of the text leaves nothing that must be changed again."""
        return part == rest + self.replaced if self.replaced else rest.startswith(part)

    def narrowed(self, typed: str) -> Offer | None:
        """What is left of it when its beginning was typed; None if something else was, or nothing is left."""
        left = self.text.removeprefix(typed)
        return replace(self, text=left) if left and len(left) < len(self.text) else None


class Assistant(Protocol):
    """An editor with a completion server behind it."""

    name: str

    @property
    def text(self) -> str:
        """The document."""

    @property
    def cursor(self) -> int:
        """Where the person types, in characters."""

    @property
    def processes(self) -> Sequence[psutil.Process]:
        """Everything that works for this assistant and would not run without it."""

    async def start(self) -> None:
        """Start every process, and wait until the model is loaded."""

    async def open(self, script: Script) -> None:
        """Open a file."""

    def move(self, offset: int) -> None:
        """Put the cursor somewhere."""

    def edit(self, start: int, deleted: int, inserted: str) -> None:
        """Change the text; the cursor stands behind the change."""

    def ask(self, expected: str | None) -> None:
        """A key was pressed: ask as the editor does.

        Args:
            expected: What will be typed from here on, for the log alone; None after a slip, which is not judged.
        """

    def offer(self) -> Offer | None:
        """What stands at the cursor now."""

    def accept(self, offer: Offer, length: int) -> None:
        """Insert the first characters of an offer."""

    async def settle(self) -> None:
        """Wait until nothing works any more."""

    async def close(self) -> None:
        """Close the file."""

    def take_requests(self) -> list[RequestRecord]:
        """The requests since the last call; they and the text that came for them are forgotten here."""

    @property
    def received_characters(self) -> int:
        """How much text came in this session, used or not."""

    async def stop(self) -> None:
        """End every process that was started for it."""


class Buffer:
    """A document with a cursor, and the requests that were made for it."""

    def __init__(self) -> None:
        self.text = ""
        self.cursor = 0
        self.requests: list[RequestRecord] = []
        self.received_characters = 0

    def load(self, script: Script) -> None:
        """Start with a file."""
        self.text, self.cursor, self.requests, self.received_characters = script.text, 0, [], 0

    def apply(self, start: int, deleted: int, inserted: str) -> None:
        """Change the text and put the cursor behind the change."""
        self.text = self.text[:start] + inserted + self.text[start + deleted :]
        self.cursor = start + len(inserted)

    def take_requests(self) -> list[RequestRecord]:
        """See `Assistant`."""
        taken, self.requests, self.received_characters = self.requests, [], 0
        return taken


def now_s() -> float:
    """The clock of every time in this benchmark."""
    return time.monotonic()
