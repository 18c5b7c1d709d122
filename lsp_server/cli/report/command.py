"""`draftline report`: statistics from the local telemetry as tables, JSON or an offline HTML page."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sqlite3
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from completion.errors import ConfigurationError, StorageError
from lsp_server.cli.report.tables import print_comparison, print_report
from lsp_server.settings.config import with_text
from lsp_server.settings.table import COMPARABLE, DEFAULTS
from lsp_server.telemetry.report_comparison import compare, winner
from lsp_server.telemetry.report_data import arms_of, read_report, variants_with
from lsp_server.telemetry.report_figures import Report, Selection
from lsp_server.telemetry.store import read_store, store_path

_SECONDS_PER_DAY = 86_400
_MAX_DAYS = 100_000
"""Maximum of `--days`: twice as many days before today, which a comparison starts with, still have a date."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `report`."""
    parser.add_argument("--days", type=float, default=30.0, metavar="N", help="report on the last N days (default: 30)")
    parser.add_argument(
        "--compare",
        metavar="WHAT",
        help='compare with the N days before ("previous"), or two values of a setting (mode=line,block)',
    )
    parser.add_argument(
        "--experiment",
        nargs="?",
        const="",
        metavar="NAME",
        help="compare the two values of an experiment (default: the latest); see `draftline experiment`",
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with plots that works offline")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def execute(options: argparse.Namespace) -> int:
    """Run the command."""
    if options.compare and options.experiment is not None:
        raise ConfigurationError("--compare has no effect with --experiment, which compares its two values. Give one.")
    path = store_path()
    if not path.exists():
        raise StorageError(
            f"No telemetry is recorded yet: {path} does not exist. Use completion in an editor first, with the setting "
            "`telemetry` on."
        )
    with read_store(path) as store:
        _present(*_reports(store, _selections(store, options, time.time())), options)
        if not (options.compare or options.json or options.html) and options.experiment is None:
            _present_latest_experiment(store)
    return 0


def _reports(store: sqlite3.Connection, selections: Mapping[str, Selection]) -> tuple[list[str], list[Report]]:
    """Return the names of the selections, and a report for each."""
    return list(selections), [read_report(store, selection) for selection in selections.values()]


def _selections(store: sqlite3.Connection, options: argparse.Namespace, now: float) -> dict[str, Selection]:
    """Return one selection to report on, or two to compare, by name."""
    if not 0 < options.days <= _MAX_DAYS:
        raise ConfigurationError(f"--days is {options.days:g}. Give a number above 0, {_MAX_DAYS} at the most.")
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
    setting, _, values = compare.partition("=")
    chosen = values.split(",")
    if setting not in COMPARABLE or len(chosen) != 2:
        known = ", ".join(COMPARABLE)
        raise ConfigurationError(
            f'--compare is "{compare}". Give "previous" or SETTING=A,B, where SETTING is one of {known}.'
        )
    default = str(getattr(DEFAULTS, setting))
    recorded = {value: str(getattr(with_text(DEFAULTS, setting, value), setting)) for value in chosen}
    if len(set(recorded.values())) < 2:
        raise ConfigurationError(f'--compare is "{compare}", whose values are the same. Give two different values.')
    return {
        f"{setting}={value}": dataclasses.replace(recent, variants=variants_with(store, setting, text, default))
        for value, text in recorded.items()
    }


def _sides(store: sqlite3.Connection, experiment: str) -> dict[str, Selection]:
    """Return a selection for each recorded side of an experiment, of the latest one for the name ""."""
    arms = arms_of(store, experiment)
    return {
        f"{arm.experiment}: {arm.side}": Selection(first, math.nextafter(last, math.inf), arm=arm)
        for arm, (first, last) in arms.items()
    }


def _both_sides(store: sqlite3.Connection, experiment: str) -> dict[str, Selection]:
    sides = _sides(store, experiment)
    if not sides and not experiment:
        raise StorageError(
            "No experiment is recorded. To start one: draftline experiment start NAME SETTING=A,B, for example "
            "mode=line,block"
        )
    if len(sides) < 2:
        name = f'experiment "{experiment}"' if experiment else "latest experiment"
        raise StorageError(
            f"The {name} has records for {len(sides)} of its 2 values. Use completion until both have some. "
            "To see the counts: draftline experiment status"
        )
    return sides


def _present_latest_experiment(store: sqlite3.Connection) -> None:
    """Print the comparison of the latest experiment, if both of its sides have records."""
    sides = _sides(store, "")
    if len(sides) == 2:
        print()
        print_comparison(*_reports(store, sides))


def _present(names: list[str], reports: list[Report], options: argparse.Namespace) -> None:
    if options.html is not None:
        from lsp_server.cli.report.page import render_page  # plotly takes a second to import

        try:
            options.html.write_text(render_page(names, reports), encoding="utf-8")
        except OSError as error:
            raise StorageError(
                f"The page {options.html} cannot be written ({error.strerror}). Give --html a file in a folder that "
                "exists and that you may write to."
            ) from error
        print(f"Wrote {options.html}", file=sys.stderr if options.json else sys.stdout)
    if options.json:
        print(json.dumps(_as_json(names, reports)))
    elif options.html is None and len(reports) == 1:
        print_report(names[0], reports[0])
    elif options.html is None:
        print_comparison(names, reports)


def _as_json(names: list[str], reports: list[Report]) -> dict[str, Any]:
    by_name = {
        name: dataclasses.asdict(report)
        | {
            "acceptance": dataclasses.asdict(report.acceptance),
            "character_acceptance": dataclasses.asdict(report.character_acceptance),
            "written_share": report.written_share,
        }
        for name, report in zip(names, reports, strict=True)
    }
    if len(reports) == 1:
        return by_name[names[0]]
    rows = compare(*reports)
    return {
        "reports": by_name,
        "comparison": [dataclasses.asdict(row) for row in rows],
        "ahead": winner(names, rows) or None,
    }
