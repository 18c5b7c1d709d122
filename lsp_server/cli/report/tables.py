"""A report as tables in the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

from lsp_server.telemetry.report_comparison import compare, winner_sentence
from lsp_server.telemetry.report_figures import QUANTILES, STAGES, Estimate, Group, Report, day_of

_MAX_ROWS = 10
_MAX_GROUPS = 24  # as many as there are hours
_BAR_CHARACTERS = 20
_VERDICT_COLOURS = {"better": "green", "worse": "red"}


def print_report(name: str, report: Report) -> None:
    """Print one report."""
    console = Console(highlight=False)
    since, until = day_of(report.selection.since), day_of(report.selection.until)
    console.print(f"[bold]draftline, {name}[/] ({since} to {until})\n")
    console.print(_summary(report))
    mark = "#" if console.options.ascii_only else "█"
    if report.offered:
        console.print(_latency(report))
    for group, title in (("language", "By language"), ("length", "By length"), ("drafter", "By main drafter"),
                         ("hour", "By hour of the day"), ("day", "By day")):  # fmt: skip
        if found := report.groups[group]:
            console.print(_groups(title, found, from_last=group == "day", mark=mark))
    if report.reasons:
        console.print(_counts("Why nothing was shown", report.reasons))
    if report.quiet:
        console.print(_counts("Kept away by your quiet controls", report.quiet))


def print_comparison(names: list[str], reports: list[Report]) -> None:
    """Print two reports side by side, with the differences between them."""
    console = Console(highlight=False)
    table = Table("", *names, "difference", "95 % interval", "", title="Comparison", title_justify="left")
    rows = compare(*reports)
    for row in rows:
        table.add_row(row.name, *row.figures, f"[{_VERDICT_COLOURS.get(row.verdict, 'dim')}]{row.verdict}[/]")
    for name in ("shown", "accepted", "accepted_characters"):
        table.add_row(name.replace("_", " "), *(str(getattr(report, name)) for report in reports), "", "", "")
    console.print(table)
    console.print(winner_sentence(names, rows), soft_wrap=True)


def _summary(report: Report) -> Table:
    table = Table(title="Summary", title_justify="left", show_header=False)
    table.add_row("suggestions offered", str(report.offered))
    table.add_row("suggestions shown", f"{report.shown}  (in editors that report it)")
    table.add_row("suggestions accepted", f"{report.accepted}  ({_of_shown(report.acceptance)})")
    table.add_row("characters accepted", f"{report.accepted_characters}  ({_of_shown(report.character_acceptance)})")
    if report.selection.whole:
        share = f"{report.written_share:.0%} of {report.written_characters} characters"
        table.add_row("written by completion", share)
    for remaining in report.remaining:
        if remaining.share.count:
            label = f"accepted text kept after {remaining.after_s} s"
            table.add_row(label, f"{remaining.share.value:.0%}  ({remaining.characters} characters)")
    for outcome, count in report.outcomes.items():
        table.add_row(f"outcome: {outcome}", str(count))
    steps, generated = report.tokens["steps"], report.tokens["generated_tokens"]
    if steps:
        table.add_row("tokens per model step", f"{generated / steps:.2f}")
    return table


def _latency(report: Report) -> Table:
    table = Table("milliseconds", *(f"p{fraction * 100:.0f}" for fraction in QUANTILES), title="Latency",
                  title_justify="left")  # fmt: skip
    for stage, label in STAGES.items():
        table.add_row(label, *(f"{value:.0f}" for value in report.latency[stage]))
    return table


def _groups(title: str, groups: tuple[Group, ...], *, from_last: bool, mark: str) -> Table:
    """Return the table of some groups. `mark` is repeated to a bar that shows the accepted share.

    If there are too many, it has the first ones, or the last ones with `from_last`.
    """
    shown = groups if len(groups) <= _MAX_GROUPS else groups[-_MAX_ROWS:] if from_last else groups[:_MAX_ROWS]
    table = Table(title=_part(title, len(shown), len(groups)), title_justify="left")
    for heading in ("", "shown", "accepted"):
        table.add_column(heading, no_wrap=True, overflow="fold")  # the bar and the interval give way to the name
    table.add_column("share (95 % interval)")
    table.add_column("", no_wrap=True, overflow="crop")
    for group in shown:
        bar = mark * round(_BAR_CHARACTERS * group.acceptance.value)
        table.add_row(group.name, str(group.shown), str(group.accepted), _percent(group.acceptance), f"[green]{bar}[/]")
    return table


def _counts(title: str, counts: Mapping[str, int]) -> Table:
    shown = list(counts.items())[:_MAX_ROWS]
    table = Table("reason", "requests", title=_part(title, len(shown), len(counts)), title_justify="left")
    for reason, count in shown:
        table.add_row(reason, str(count))
    return table


def _part(title: str, shown: int, all_: int) -> str:
    """Return a table's title, which says if rows are left out."""
    return title if shown == all_ else f"{title}, {shown} of {all_}"


def _of_shown(estimate: Estimate) -> str:
    if not estimate.count:
        return "none shown"
    return f"{estimate.value:.0%} of shown, 95 % interval {estimate.low:.0%} to {estimate.high:.0%}"


def _percent(estimate: Estimate) -> str:
    if not estimate.count:
        return "–"
    return f"{estimate.value:.0%}, {estimate.low:.0%} to {estimate.high:.0%}"
