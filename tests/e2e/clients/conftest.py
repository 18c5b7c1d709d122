"""One host for all clients, and the table of what they made of its suggestions, printed at the end."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.e2e.clients.client import Client
from tests.e2e.clients.cursors import CURSORS
from tests.e2e.clients.forced_host import ForcedHost
from tests.e2e.clients.neovim import OurPlugin

VERDICTS = ("equal", "shorter", "nothing", "wrong")
ROWS: list[Row] = []


@dataclass(frozen=True, slots=True)
class Row:
    """A client of the table, with its verdict at each cursor."""

    name: str
    version: str
    shows: str
    verdicts: tuple[str, ...]
    documents: tuple[str, ...] = field(repr=False)

    def cells(self) -> tuple[str, ...]:
        """Return the cells of the table."""
        counts = Counter(self.verdicts)
        return (self.name, self.version, self.shows, *(str(counts[one]) for one in VERDICTS))


@pytest.fixture(scope="session")
def forced_host() -> Iterator[ForcedHost]:
    """Start the host, in folders whose paths are short enough for a socket."""
    folder = Path(tempfile.mkdtemp(prefix="dl-", dir="/tmp"))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("RUNTIME", "STATE", "CACHE"):
            patch.setenv(f"DRAFTLINE_{name}_DIR", str(folder / name.lower()))
        host = ForcedHost(folder)
        yield host
        host.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def documents_in_plugin(forced_host: ForcedHost, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Return the document at each cursor in our own plugin."""
    return tuple(_documents(OurPlugin(tmp_path_factory.mktemp("plugin"), forced_host.environment)))


def _documents(client: Client) -> Iterator[str]:
    try:
        client.wait_until_ready()
        for cursor in CURSORS:
            yield client.document_at(cursor)
    finally:
        client.close()


@pytest.fixture
def row_of(forced_host: ForcedHost, documents_in_plugin: tuple[str, ...], tmp_path: Path):
    """Return a function that runs a client at every cursor and returns its row."""

    def run(kind: type[Client]) -> Row:
        client = kind(tmp_path, forced_host.environment)
        documents = tuple(_documents(client))
        verdicts = tuple(map(lambda one, *texts: one.verdict(*texts), CURSORS, documents, documents_in_plugin))
        ROWS.append(Row(kind.name, client.version, kind.shows, verdicts, documents))
        return ROWS[-1]

    return run


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table."""
    if not ROWS:
        return
    head = ("client", "version", "how it shows", *VERDICTS)
    lines = [head, *(row.cells() for row in ROWS)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    terminalreporter.section(f"{len(ROWS)} clients at {len(CURSORS)} cursors, compared with our own plugin")
    for cells in lines:
        terminalreporter.write_line("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)))
