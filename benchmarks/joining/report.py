"""Counts the verdicts of benchmarks.joining, and prints them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.figures import percentile, rounded
from benchmarks.joining.verdicts import Verdict

_GROUPS: dict[str, Callable[[Verdict], str]] = {
    "language": lambda each: each.triple.language,
    "text": lambda each: f"{each.triple.kind.value}, {'manual' if each.invoked else 'automatic'}",
}


def counts(verdicts: Sequence[Verdict], group: str) -> dict[str, dict[str, int]]:
    """Return the number of texts of each group, and of those that are kept whole."""
    found: dict[str, dict[str, int]] = {}
    for each in verdicts:
        count = found.setdefault(_GROUPS[group](each), {"texts": 0, "kept": 0})
        count["texts"] += 1
        count["kept"] += each.kept
    return found


def print_tables(verdicts: Sequence[Verdict], table_ms: Mapping[str, float], console: Console) -> None:
    """Print how many texts are kept by language and by kind of text, and what their verdicts cost."""
    for group in _GROUPS:
        table = Table(group, "texts", "kept")
        for name, count in counts(verdicts, group).items():
            table.add_row(name, *map(str, count.values()))
        console.print(table)
    table = Table("language", "steps: median / p95 / max", "ms: median / p95 / max", "table, ms")
    for language, ms in table_ms.items():
        cost = _cost([each for each in verdicts if each.triple.language == language])
        values = [f"{value:.0f}" for value in cost.values() if value is not None]
        table.add_row(language, " / ".join(values[:3]), " / ".join(values[3:]), f"{ms:.0f}")
    console.print(table)


def summary(verdicts: Sequence[Verdict], table_ms: Mapping[str, float]) -> dict[str, Any]:
    """Return the figures of the last line."""
    return {
        "texts": len(verdicts),
        "kept": sum(each.kept for each in verdicts),
        **_cost(verdicts),
        "table_ms_max": rounded(max(table_ms.values(), default=None), 1),
        "by_language": counts(verdicts, "language"),
        "by_kind": counts(verdicts, "text"),
    }


def _cost(verdicts: Sequence[Verdict]) -> dict[str, float | None]:
    """Return steps and processor time of one verdict."""
    found: dict[str, float | None] = {}
    for name, values in (("steps", [each.steps for each in verdicts]), ("ms", [each.ms for each in verdicts])):
        found |= {
            f"{name}_median": rounded(percentile(values, 0.5), 2),
            f"{name}_p95": rounded(percentile(values, 0.95), 2),
            f"{name}_max": rounded(max(values, default=None), 2),
        }
    return found
