"""`draftline telemetry export|clear|path`: exports or deletes the local telemetry, or prints the path of its store."""

from __future__ import annotations

import argparse
import json
import sqlite3

from lsp_server.telemetry.store import clear, read_store, store_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `telemetry`."""
    parser.add_argument(
        "action",
        choices=("export", "clear", "path"),
        help="export: print every record as JSON; clear: delete the store; path: print the path of the store",
    )


def execute(options: argparse.Namespace) -> int:
    """Run the command."""
    if options.action == "path":
        print(store_path())
    elif options.action == "clear":
        is_recorded = store_path().exists()
        clear(store_path())
        print(f"Deleted {store_path()}" if is_recorded else f"No telemetry is recorded: {store_path()} does not exist.")
    elif store_path().exists():
        _export()
    return 0


def _export() -> None:
    """Print each row of the store as a JSON object on a line of its own. Only the table with the salt is left out."""
    with read_store(store_path()) as store:
        store.row_factory = sqlite3.Row
        for table in ("suggestions", "persistence", "refusals", "written"):
            for row in store.execute(f"SELECT * FROM {table}"):  # noqa: S608 - names of our own tables
                print(json.dumps({"table": table, **dict(row)}))
