"""Renders the tables of figures into the pages: `<!-- figures: NAME -->` up to `<!-- end of figures -->`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.report.machine import ROOT
from benchmarks.report.runs import BY_NAME
from benchmarks.report.table import Row, Table
from benchmarks.report.tables import TABLES

FIGURES = ROOT / "docs" / "figures.json"
"""The figures that the pages show."""
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_REGION = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)

Report = Mapping[str, Any]
Figure: TypeAlias = float | bool | str | None


def figure(report: Report, key: str) -> Figure:
    """Return the figure with a key RUN/NAME, or RUN/NAME/NAME where figures are nested; None if there is none."""
    name, *path = key.split("/")
    found: Any = report["runs"].get(name, {}).get("figures")
    for part in path:
        found = found.get(part) if isinstance(found, dict) else None
    return found if isinstance(found, (float, int, str)) else None


def render(text: str, report: Report) -> str:
    """Return the text of a page with the tables of a report in its regions.

    Raises:
        SystemExit: A region names no table.
    """

    def region(match: re.Match[str]) -> str:
        return f"{match[1]}{_content(match[2], report)}\n{match[3]}"

    return _REGION.sub(region, text)


def regions(text: str) -> list[str]:
    """Return the names of the regions of a page."""
    return [match[2] for match in _REGION.finditer(text)]


def write_pages(report: Report, pages: Sequence[Path] = PAGES) -> list[Path]:
    """Render all pages. Return those that are different now."""
    changed = []
    for page in pages:
        old = page.read_text(encoding="utf-8")
        new = render(old, report)
        if new != old:
            page.write_text(new, encoding="utf-8")
            changed.append(page)
    return changed


def _content(name: str, report: Report) -> str:
    if name == "age":
        return _age(report)
    if name not in TABLES:
        raise SystemExit(f"No table is named {name!r}. Choose from: {', '.join(('age', *TABLES))}.")
    return _table(TABLES[name], report)


def _age(report: Report) -> str:
    """Return the sentences on where the figures are from."""
    machine, versions = report["machine"], report["versions"]
    packages = ", ".join(f"{name} {number}" for name, number in versions.items())
    place = f"{machine['cores']} cores ({machine['processor']}) with {machine['memory_gb']} GB of memory"
    lines = [
        f"`python -m benchmarks.report --{report['form']}` printed the figures at commit {report['commit']}",
        f"on {place}: {machine['system']}, {packages}.",
    ]
    failed = [f"`{run['command']}`" for run in report["runs"].values() if "failed" in run]
    if failed:
        lines.append(f"These gave no figures: {', '.join(failed)}.")
    return "\n".join(lines)


def _table(table: Table, report: Report) -> str:
    """Return a table below the commands that printed it, or a sentence if the report has none of its figures."""
    names = dict.fromkeys(row.run for row in table.rows)
    present = [name for name in names if "figures" in report["runs"].get(name, {})]
    rows = [row for row in table.rows if any(figure(report, key) is not None for key in row.keys)]
    if "command" in table.heads:
        rows = list(table.rows)
    if not rows:
        commands = ", ".join(f"`{BY_NAME[name].command('long')}`" for name in names)
        failed = any("failed" in report["runs"].get(name, {}) for name in names)
        return f"{commands} gave no figures." if failed else f"{commands} is not part of this report."
    lines = [_line(table.heads), "|" + "---|" * len(table.heads)]
    lines += [_line(_cells(row, table.heads, report)) for row in rows]
    if "command" not in table.heads:
        commands = ", ".join(f"`{report['runs'][name]['command']}`" for name in present)
        lines = [f"{commands}:", "", *lines]
    return "\n".join(lines)


def _cells(row: Row, heads: Sequence[str], report: Report) -> list[str]:
    values = iter(row.keys)
    cells = [re.sub(r"\{([^}]+)\}", lambda match: _shown("{:,}", figure(report, match[1])), row.what)]
    for head in heads[1:]:
        if head == "command":
            cells.append(f"`python -m benchmarks.{BY_NAME[row.run].module}`")
        else:
            key = next(values, "")
            cells.append(_shown(row.shape, figure(report, key)) if key else "")
    return cells


def _shown(shape: str, value: Figure) -> str:
    """Return a figure in its format, a dash where there is none."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return str(value).lower()
    return shape.format(value).replace("%", " %").replace("-", "−")


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
