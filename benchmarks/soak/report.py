"""What benchmarks.soak prints and draws."""

from __future__ import annotations

import statistics
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.figures import percentile
from benchmarks.soak.week import DAYS, HOURS, Week, is_repeated

_MB = 1e6


def headline(week: Week) -> dict[str, float | int | None]:
    """Return the figures of the last line: growth and latency compare hours in which the same keys were typed."""
    repeated = [hour for hour in range(HOURS) if is_repeated(hour)]
    middle, last = min(hour for hour in repeated if hour >= HOURS // 2), repeated[-1]
    resident = {
        hour: statistics.median(one.host + one.servers for one in week.samples if one.hour == hour)
        for hour in (middle, last)
    }
    early, late = week.waits_s[0], week.waits_s[last]
    ratio = statistics.median(late) / statistics.median(early) if early and late else None
    return {
        "resident_growth_mb": round((resident[last] - resident[middle]) / _MB, 1),
        "resident_mb": round(max(sample.host + sample.servers for sample in week.samples) / _MB, 1),
        "latency_ratio_last_first": None if ratio is None else round(ratio, 3),
        "left_behind": len(week.left_behind),
        "keys": week.samples[-1].keys,
    }


def print_table(week: Week) -> None:
    """Print a row for each day."""
    table = Table("day", "keys", "answers", "p50 ms", "p95 ms", "engine MB", "servers MB", title="A working week")
    for day in range(DAYS):
        hours = slice(day * HOURS // DAYS, (day + 1) * HOURS // DAYS)
        waits = [1000 * wait for hour in week.waits_s[hours] for wait in hour]
        last = week.samples[-1].keys
        samples = [one for one in week.samples if day * last / DAYS < one.keys <= (day + 1) * last / DAYS]
        table.add_row(
            str(day + 1),
            f"{samples[-1].keys:,}" if samples else "–",
            f"{len(waits):,}",
            _shown(percentile(waits, 0.5)),
            _shown(percentile(waits, 0.95)),
            f"{max((one.host for one in samples), default=0) / _MB:,.0f}",
            f"{max((one.servers for one in samples), default=0) / _MB:,.0f}",
        )
    Console().print(table)
    for left in week.left_behind:
        print(f"left behind: {left}")


def _shown(milliseconds: float | None) -> str:
    return "–" if milliseconds is None else f"{milliseconds:,.0f}"


def draw(week: Week, path: Path) -> None:
    """Memory over the keys of the week, as SVG."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    plt.rcParams["svg.hashsalt"] = "soak"  # the same figures make the same file
    figure, axes = plt.subplots(figsize=(8, 4.2))
    keys = [sample.keys for sample in week.samples]
    axes.plot(keys, [sample.host / _MB for sample in week.samples], label="engine", color="#2e9e6b")
    axes.plot(keys, [sample.servers / _MB for sample in week.samples], label="language servers", color="#c05746")
    axes.set(ylim=(0, None), xlabel="keys typed", ylabel="resident memory, MB", title="A working week")
    axes.grid(visible=True, alpha=0.25)
    axes.legend(loc="lower right", frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
