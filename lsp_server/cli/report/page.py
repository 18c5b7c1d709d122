"""A report as a self-contained HTML page. It embeds the plots' script, needs no network and contains only numbers."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from lsp_server.telemetry.report_comparison import compare, winner_sentence
from lsp_server.telemetry.report_figures import QUANTILES, STAGES, Group, Report, day_of

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1080px; margin: 2em auto; padding: 0 1em; color: #1d2733 }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin-top: 2em } table { border-collapse: collapse }
td, th { padding: .25em .9em; border-bottom: 1px solid #dde3ea; text-align: left } td.n { text-align: right }
p.note { color: #5b6876 } .cards { display: flex; flex-wrap: wrap; gap: 1em }
.card { border: 1px solid #dde3ea; border-radius: 8px; padding: .7em 1.2em }
.card b { display: block; font-size: 1.7em }
"""
_GREEN, _GREY, _BLUE = "#2e9e6b", "#c3ccd6", "#3a6ea5"
_PLOT_HEIGHT = 330


def render_page(names: Sequence[str], reports: Sequence[Report]) -> str:
    """Return the page of one report, or of two to compare, as HTML; the plots show the last one."""
    report = reports[-1]
    parts = [f"<h1>draftline, {html.escape(names[-1])}</h1>", _period(report), _cards(report)]
    if len(reports) == 2:
        parts += ["<h2>Comparison</h2>", _comparison(names, reports)]
    figures = _figures(report)
    for number, (title, note, figure) in enumerate(figures):
        parts += [f"<h2>{title}</h2>", f'<p class="note">{note}</p>', _plot(figure, with_script=number == 0)]
    parts += [_counts("Why nothing was shown", report.reasons)]
    parts += [_counts("Kept away by your quiet controls", report.quiet)] if report.quiet else []
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>draftline report</title>'
        f"<style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def _figures(report: Report) -> list[tuple[str, str, go.Figure]]:
    """Return the title, a caption and the plot of each section."""
    share_note = (
        "Share of the shown suggestions that were accepted, in whole or in part. Error bars show the 95 % interval."
    )
    return [
        ("By day", "Number of suggestions that were shown and accepted.", _by_day(report.groups["day"])),
        ("Accepted text kept", "Similarity of the accepted text to the text at its position later.", _kept(report)),
        ("Latency", "Half of the answers arrived within p50, one in twenty after p95.", _latency(report)),
        ("By language", share_note, _acceptance(report.groups["language"])),
        ("By length in characters", share_note, _acceptance(report.groups["length"])),
        ("By main drafter", share_note, _acceptance(report.groups["drafter"])),
        ("By hour of the day", share_note, _acceptance(report.groups["hour"])),
    ]


def _plot(figure: go.Figure, *, with_script: bool) -> str:
    figure.update_layout(height=_PLOT_HEIGHT, margin={"l": 50, "r": 20, "t": 20, "b": 45}, template="plotly_white")
    text: str = figure.to_html(full_html=False, include_plotlyjs=with_script, config={"displayModeBar": False})
    return text


def _by_day(days: Sequence[Group]) -> go.Figure:
    names = [group.name for group in days]
    return go.Figure(
        [
            go.Bar(name="shown", x=names, y=[group.shown for group in days], marker_color=_GREY),
            go.Bar(name="accepted", x=names, y=[group.accepted for group in days], marker_color=_GREEN),
        ]
    ).update_layout(barmode="overlay", xaxis_type="category")


def _acceptance(groups: Sequence[Group]) -> go.Figure:
    estimates = [group.acceptance for group in groups]
    error = {
        "type": "data",
        "array": [100 * (one.high - one.value) for one in estimates],
        "arrayminus": [100 * (one.value - one.low) for one in estimates],
    }
    bars = go.Bar(
        x=[group.name for group in groups],
        y=[100 * one.value for one in estimates],
        error_y=error,
        marker_color=_GREEN,
        customdata=[group.shown for group in groups],
        hovertemplate="%{x}: %{y:.0f} % of %{customdata} shown<extra></extra>",
    )
    return go.Figure(bars).update_layout(yaxis_title="accepted, %", yaxis_rangemode="tozero", xaxis_type="category")


def _kept(report: Report) -> go.Figure:
    bars = go.Bar(
        x=[f"{one.after_s} s" for one in report.remaining],
        y=[100 * one.share.value for one in report.remaining],
        marker_color=_BLUE,
        customdata=[[one.share.count, one.characters] for one in report.remaining],
        hovertemplate="%{y:.0f} % of %{customdata[0]} accepted, %{customdata[1]} characters<extra></extra>",
    )
    return go.Figure(bars).update_layout(yaxis_title="kept, %", yaxis_range=[0, 105])


def _latency(report: Report) -> go.Figure:
    labels = list(STAGES.values())
    bars = [
        go.Bar(name=f"p{fraction * 100:.0f}", x=labels, y=[report.latency[stage][number] for stage in STAGES])
        for number, fraction in enumerate(QUANTILES)
    ]
    return go.Figure(bars).update_layout(barmode="group", yaxis_title="ms")


def _period(report: Report) -> str:
    since, until = day_of(report.selection.since), day_of(report.selection.until)
    return f'<p class="note">{since} to {until}. Counted on this machine: no text is stored, and nothing is sent.</p>'


def _cards(report: Report) -> str:
    acceptance = report.acceptance
    interval = f"accepted of {report.shown} shown ({acceptance.low:.0%} to {acceptance.high:.0%})"
    cards = [
        (f"{acceptance.value:.0%}" if acceptance.count else "–", interval),
        (f"{report.accepted_characters}", "characters accepted"),
        (f"{report.answer.value:.0f} ms", "median time to the complete answer"),
    ]
    if report.selection.whole:
        cards.insert(2, (f"{report.written_share:.0%}", "of the written characters came from completion"))
    return (
        '<div class="cards">'
        + "".join(f'<div class="card"><b>{big}</b>{small}</div>' for big, small in cards)
        + "</div>"
    )


def _comparison(names: Sequence[str], reports: Sequence[Report]) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in ("", *names, "difference", "95 % interval", ""))
    rows, compared = "", compare(*reports)
    for row in compared:
        cells = "".join(f'<td class="n">{figure}</td>' for figure in row.figures)
        rows += f"<tr><td>{row.name}</td>{cells}<td>{row.verdict}</td></tr>"
    return f"<table><tr>{head}</tr>{rows}</table><p>{html.escape(winner_sentence(names, compared))}</p>"


def _counts(title: str, counts: Mapping[str, int]) -> str:
    rows = "".join(
        f'<tr><td>{html.escape(reason)}</td><td class="n">{count}</td></tr>' for reason, count in counts.items()
    )
    return f"<h2>{title}</h2><table><tr><th>reason</th><th>requests</th></tr>{rows}</table>"
