"""What the tests need of a client: open a document, put the cursor, ask, accept, and give the document back."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tests.e2e.clients.cursors import CURSORS, Cursor

READY_S = 60.0


class Client(ABC):
    """One running client with its own language server.

    Attributes:
        name: Name in the table.
        shows: How it shows a suggestion.
        version: Version of the program, and of its plugin.
    """

    name: ClassVar[str]
    shows: ClassVar[str]
    version: str = ""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.environment = environment
        self._documents = 0

    def wait_until_ready(self) -> None:
        """Ask at a cursor, each time in a new file, until the server has its engine and suggests something."""
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            if self.document_at(CURSORS[0]) != CURSORS[0].before + CURSORS[0].after:
                return
        raise AssertionError(f"{self.name} inserted nothing in {self._documents} documents.")

    def document_at(self, cursor: Cursor) -> str:
        """Return the document after the suggestion at a cursor was accepted in a new file."""
        self._documents += 1
        file = self.folder / f"c{self._documents:02}-{cursor.file}"
        file.write_bytes((cursor.before + cursor.after).encode())
        self.accept(file, cursor)
        return file.read_bytes().decode()

    @abstractmethod
    def accept(self, file: Path, cursor: Cursor) -> None:
        """Open the file, ask for a suggestion at the cursor, accept it if there is one, and save the file."""

    @abstractmethod
    def close(self) -> None:
        """End the client."""


def line_and_column(cursor: Cursor) -> tuple[int, int]:
    """Return the line of a cursor from 1, and the number of characters before it on its line."""
    before = cursor.before.replace("\r\n", "\n")
    return before.count("\n") + 1, len(before.rpartition("\n")[2])
