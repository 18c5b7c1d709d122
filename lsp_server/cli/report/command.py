"""`draftline report`: whether completion is worth it, from the local store: tables, JSON, one offline page."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from completion.errors import ConfigurationError, StorageError

if TYPE_CHECKING:
    from lsp_server.telemetry.report_data import Report, Selection

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
    parser.add_argument(
        "--experiment",
        nargs="?",
        const="",
        metavar="NAME",
        help="compare the sides of an experiment (default: the latest); see `draftline experiment`",
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write one page with plots; needs no network")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Run what `add_parser` parsed."""
    from lsp_server.telemetry.schema import open_store, store_path

    path = store_path()
    if not path.exists():
        raise StorageError(f"There is no telemetry yet: {path} does not exist. Use completion in an editor first.")
    store = open_store(path)
    try:
        _present(*_reports(store, _selections(store, options, time.time())), options)
        if not (options.compare or options.json or options.html) and options.experiment is None:
            _present_latest_experiment(store)
    finally:
        store.close()
    return 0


def _reports(store: sqlite3.Connection, selections: Mapping[str, Selection]) -> tuple[list[str], list[Report]]:
    """A report for each selection, and their names."""
    from lsp_server.telemetry.report_data import read_report

    return list(selections), [read_report(store, selection) for selection in selections.values()]


def _selections(store: sqlite3.Connection, options: argparse.Namespace, now: float) -> dict[str, Selection]:
    """What is reported: one selection, or two that are compared."""
    from lsp_server.telemetry.report_data import Selection

    if options.days <= 0:
        raise ConfigurationError(f"--days is {options.days:g}; it must be more than 0.")
    if options.experiment is not None:
        return _both_sides(store, options.experiment)
    span = options.days * _SECONDS_PER_DAY
    recent = Selection(now - span, now)
    if options.compare is None:
        return {f"last {options.days:g} days": recent}
    if options.compare == "previous":
        before = Selection(now - 2 * span, now - span)
        return {f"{options.days:g} days before": before, f"last {options.days:g} days": recent}
    return _by_setting(store, options.compare, recent)


def _by_setting(store: sqlite3.Connection, compare: str, recent: Selection) -> dict[str, Selection]:
    from lsp_server.settings.config import with_text
    from lsp_server.settings.table import COMPARABLE, DEFAULTS
    from lsp_server.telemetry.report_data import variants_with

    setting, _, values = compare.partition("=")
    chosen = values.split(",")
    if setting not in COMPARABLE or len(chosen) != 2:
        known = ", ".join(COMPARABLE)
        raise ConfigurationError(
            f'--compare is "{compare}"; it must be "previous" or SETTING=A,B, with one of {known}.'
        )
    default = str(getattr(DEFAULTS, setting))
    recorded = {value: str(getattr(with_text(DEFAULTS, setting, value), setting)) for value in chosen}
    return {
        f"{setting}={value}": dataclasses.replace(recent, variants=variants_with(store, setting, text, default))
        for value, text in recorded.items()
    }


def _sides(store: sqlite3.Connection, experiment: str) -> dict[str, Selection]:
    """The sides of an experiment that were recorded; the name "" is the latest one's."""
    from lsp_server.telemetry.report_data import Selection, arms_of

    arms = arms_of(store, experiment)
    return {
        f"{arm.experiment}: {arm.side}": Selection(first, math.nextafter(last, math.inf), arm=arm)
        for arm, (first, last) in arms.items()
    }


def _both_sides(store: sqlite3.Connection, experiment: str) -> dict[str, Selection]:
    sides = _sides(store, experiment)
    if len(sides) < 2:
        named = f' "{experiment}"' if experiment else ""
        raise StorageError(f"Both sides of an experiment{named} must have been met; so far {len(sides)} was recorded.")
    return sides


def _present_latest_experiment(store: sqlite3.Connection) -> None:
    """Below the report, if both sides have been met."""
    from lsp_server.cli.report.tables import print_comparison

    sides = _sides(store, "")
    if len(sides) == 2:
        print()
        print_comparison(*_reports(store, sides))


def _present(names: list[str], reports: list[Report], options: argparse.Namespace) -> None:
    from lsp_server.cli.report.tables import print_comparison, print_report

    if options.html is not None:
        from lsp_server.cli.report.page import render_page

        options.html.write_text(render_page(names, reports), encoding="utf-8")
        print(f"Written: {options.html}")
    if options.json:
        print(json.dumps(_as_json(names, reports)))
    elif options.html is None and len(reports) == 1:
        print_report(names[0], reports[0])
    elif options.html is None:
        print_comparison(names, reports)


def _as_json(names: list[str], reports: list[Report]) -> dict[str, Any]:
    from lsp_server.telemetry.report_comparison import compare, winner

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
    rows = compare(*reports)
    return {
        "reports": found,
        "comparison": [dataclasses.asdict(row) for row in rows],
        "ahead": winner(names, rows) or None,
    }
