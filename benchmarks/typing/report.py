"""Output of benchmarks.typing: the table of rows, the ratios of the last line, the plot of times to the first text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.figures import ratio
from benchmarks.typing.tally import RowTally, curve, waits

Figures = Mapping[str, float | None]

_PERCENT = ("exact_first_line", "keys_with_text", "keys_with_right_line", "saved_characters", "saved_keys",
            "accepted_of_answered", "unused_text")  # fmt: skip
_COLOURS = ("#2e9e6b", "#c05746", "#d49a3a", "#7a5ea8")


def print_table(rows: Mapping[str, Figures]) -> None:
    """Print one column for each row of the comparison."""
    table = Table("", *rows)
    for name in next(iter(rows.values())):
        table.add_row(name, *(_cell(name, figures[name]) for figures in rows.values()))
    Console(width=40 + 15 * len(rows)).print(table)


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "–"
    if name in _PERCENT:
        return f"{100 * value:.1f} %"
    return f"{value:.3f}" if name == "cpu_s_per_saved_character" else f"{value:,.0f}"


_OWN = ("first_text_p50_ms", "first_text_p95_ms", "first_line_p50_ms", "saved_characters", "exact_first_line",
        "keys_with_text", "keys_with_right_line", "unused_text")  # fmt: skip


def headline(ours: Figures, theirs: Figures | None, stale_requests: int | None) -> dict[str, Any]:
    """Return the figures of the last line, None where a side has too few suggestions or did not run."""

    def slower(name: str) -> float | None:
        return ratio(theirs[name], ours[name]) if theirs else None

    def more(name: str) -> float | None:
        return ratio(ours[name], theirs[name]) if theirs else None

    found = {
        "first_text_p50_ratio": slower("first_text_p50_ms"),
        "first_text_p95_ratio": slower("first_text_p95_ms"),
        "first_line_p50_ratio": slower("first_line_p50_ms"),
        "exact_first_line_ratio": more("exact_first_line"),
        "saved_characters_ratio": more("saved_characters"),
        "cpu_per_saved_character_ratio": more("cpu_s_per_saved_character"),
        "sessions": ours["sessions"],
        "answered": ours["answered"],
        "their_sessions": theirs["sessions"] if theirs else None,
        "their_answered": theirs["answered"] if theirs else None,
        "stale_requests": stale_requests,
        **{name: ours[name] for name in _OWN},
    }
    return {name: None if value is None else round(value, 3) for name, value in found.items()}


def before(figures: Figures | None, saved: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Return the figures of an older version for the last line; nothing if it did not run.

    Args:
        figures: Its figures.
        saved: Saved characters of each session now and before.
    """
    if figures is None:
        return {}
    own = {f"before_{name}": None if (value := figures[name]) is None else round(value, 3) for name in _OWN}
    return own | {"session_saved_now_and_before": saved}


def draw(rows: Mapping[str, RowTally], path: Path) -> None:
    """Draw the distribution of the times to the first text of each row into an SVG file."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    plt.rcParams["svg.hashsalt"] = "typing"  # the same figures give the same file
    figure, axes = plt.subplots(figsize=(8, 4.2))
    for (name, tally), colour in zip(rows.items(), _COLOURS, strict=False):
        found = [(0.001, 0.0), *curve(waits(tally.requests, lambda request: request.first_text_s))]
        seconds, shares = zip(*found, strict=True)
        axes.step([1e3 * one for one in seconds], [100 * one for one in shares], where="post", label=name, color=colour)
    axes.set(xscale="log", xlim=(10, 20_000), ylim=(0, 100), xlabel="milliseconds after the key or the request",
             ylabel="suggestions on the screen, %", title="Time to first text")  # fmt: skip
    axes.grid(visible=True, which="both", alpha=0.25)
    axes.legend(loc="lower right", frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
