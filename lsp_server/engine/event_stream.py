"""Reads server-sent events from the parts of a reply."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class ServerEvent(NamedTuple):
    """One event: its name, "" for none, and its data."""

    name: str
    data: str


class EventReader:
    """Reads one stream. Fields that draftline's hosts never send are ignored.

    Source: HTML Living Standard, section 9.2.6 "Interpreting an event stream".
    """

    def __init__(self) -> None:
        self._begun: list[bytes] = []  # of a line
        self._name, self._data = "", list[str]()

    def read(self, part: bytes) -> Iterator[ServerEvent]:
        """Yield the events that end in the next part of the stream."""
        first, *others = part.split(b"\n")
        self._begun.append(first)
        for other in others:
            line = b"".join(self._begun).decode("utf-8", "replace").removesuffix("\r")
            self._begun = [other]
            if line:
                self._note(line)
                continue
            if self._data:
                yield ServerEvent(self._name, "\n".join(self._data))
            self._name, self._data = "", []

    def _note(self, line: str) -> None:
        field, _, value = line.partition(":")
        if field == "event":
            self._name = value.removeprefix(" ")
        elif field == "data":
            self._data.append(value.removeprefix(" "))
