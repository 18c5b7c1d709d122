"""`draftline report`: whether completion is worth it, from the local store: tables, JSON, one offline page."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from completion.errors import ConfigurationError, StorageError

if TYPE_CHECKING:
    from lsp_server.report_data import Report, Selection

_SECONDS_PER_DAY = 86_400


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register `report`."""
    parser = subparsers.add_parser("report", help="what was suggested, accepted and kept; how long it took")
    parser.add_argument("--days", type=float, default=30.0, metavar="N", help="look back this far (default: 30)")
    parser.add_argument(
        "--compare",
        metavar="WHAT",
        help='"previous": with as many days before; "SETTING=A,B": two values of a setting (mode=line,block)',
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write one page with plots; needs no network")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Run what `add_parser` parsed."""
    from lsp_server.telemetry_schema import open_store, store_path

    path = store_path()
    if not path.exists():
        raise StorageError(f"There is no telemetry yet: {path} does not exist. Use completion in an editor first.")
    store = open_store(path)
    try:
        names, reports = _reports(store, options, time.time())
    finally:
        store.close()
    _present(names, reports, options)
    return 0


def _reports(store: sqlite3.Connection, options: argparse.Namespace, now: float) -> tuple[list[str], list[Report]]:
    """One report, or two that are compared, each with its name."""
    from lsp_server.report_data import read_report

    selections = _selections(store, options, now)
    return list(selections), [read_report(store, selection) for selection in selections.values()]


def _selections(store: sqlite3.Connection, options: argparse.Namespace, now: float) -> dict[str, Selection]:
    from lsp_server.report_data import Selection

    if options.days <= 0:
        raise ConfigurationError(f"--days is {options.days:g}; it must be more than 0.")
    span = options.days * _SECONDS_PER_DAY
    recent = Selection(now - span, now)
    if options.compare is None:
        return {f"last {options.days:g} days": recent}
    if options.compare == "previous":
        before = Selection(now - 2 * span, now - span)
        return {f"{options.days:g} days before": before, f"last {options.days:g} days": recent}
    return _by_setting(store, options.compare, recent)


def _by_setting(store: sqlite3.Connection, compare: str, recent: Selection) -> dict[str, Selection]:
    from lsp_server.config import DEFAULTS
    from lsp_server.report_data import variants_with

    setting, _, values = compare.partition("=")
    chosen = values.split(",")
    if not hasattr(DEFAULTS, setting) or len(chosen) != 2:
        raise ConfigurationError(f'--compare is "{compare}"; it must be "previous" or SETTING=A,B.')
    default = str(getattr(DEFAULTS, setting))
    return {
        f"{setting}={value}": dataclasses.replace(recent, variants=variants_with(store, setting, value, default))
        for value in chosen
    }


def _present(names: list[str], reports: list[Report], options: argparse.Namespace) -> None:
    from lsp_server.cli.report_tables import print_comparison, print_report

    if options.html is not None:
        from lsp_server.cli.report_page import render_page

        options.html.write_text(render_page(names, reports), encoding="utf-8")
        print(f"Written: {options.html}")
    if options.json:
        print(json.dumps(_as_json(names, reports)))
    elif options.html is None and len(reports) == 1:
        print_report(names[0], reports[0])
    elif options.html is None:
        print_comparison(names, reports)


def _as_json(names: list[str], reports: list[Report]) -> dict[str, Any]:
    from lsp_server.report_comparison import compare

    found = {
        name: dataclasses.asdict(report)
        | {
            "acceptance": dataclasses.asdict(report.acceptance),
            "character_acceptance": dataclasses.asdict(report.character_acceptance),
            "written_share": report.written_share,
        }
        for name, report in zip(names, reports, strict=True)
    }
    if len(reports) == 1:
        return found[names[0]]
    rows = [dataclasses.asdict(row) for row in compare(*reports)]
    return {"reports": found, "comparison": rows}
