"""`draftline telemetry export|clear`: take the local records out, or delete them."""

from __future__ import annotations

import argparse
import json
import sys


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register `telemetry`."""
    parser = subparsers.add_parser("telemetry", help="export or delete the local records; where they lie")
    parser.add_argument("action", choices=("export", "clear", "path"))
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Run what `add_parser` parsed."""
    from lsp_server.telemetry.schema import store_path
    from lsp_server.telemetry.store import clear

    if options.action == "path":
        print(store_path())
    elif options.action == "clear":
        clear(store_path())
        print(f"Deleted: {store_path()}")
    else:
        _export()
    return 0


def _export() -> None:
    """One JSON object a line: the table's name and a row; nothing is left out but the salt."""
    from lsp_server.telemetry.schema import open_store, store_path

    if not store_path().exists():
        return
    store = open_store(store_path())
    for table in ("suggestions", "persistence", "refusals", "written"):
        cursor = store.execute(f"SELECT * FROM {table}")  # noqa: S608 - names of our own tables
        names = [column[0] for column in cursor.description]
        for row in cursor:
            json.dump({"table": table, **dict(zip(names, row, strict=True))}, sys.stdout)
            print()
    store.close()
