"""Two reports side by side: what changed, and whether more than chance would change it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lsp_server.report_data import Report
from lsp_server.report_statistics import Estimate, median_difference, share_difference


@dataclass(frozen=True, slots=True)
class Row:
    """One figure in both reports, and the difference with its interval.

    Attributes:
        unit: "share" or "ms".
        verdict: "better", "worse", or "no clear difference" where the interval holds zero.
    """

    name: str
    unit: str
    first: Estimate
    second: Estimate
    difference: Estimate
    verdict: str


DECIDING = "accepted of shown"
"""The figure by which a side wins."""


def compare(first: Report, second: Report) -> list[Row]:
    """Acceptance, kept text and latency of two reports."""
    rows = [
        _share_row(DECIDING, first.acceptance, second.acceptance),
        *(
            _mean_row(f"kept after {one.after_s} s", one.share, other.share)
            for one, other in zip(first.remaining, second.remaining, strict=True)
        ),
        _latency_row("median time to the whole answer", first.answer, second.answer),
    ]
    return [row for row in rows if row.first.count or row.second.count]


def winner(names: Sequence[str], rows: Sequence[Row]) -> str:
    """The name of the report that is clearly ahead in what users accept of what they see; "" where chance explains it.

    Args:
        names: Of the two reports.
        rows: What `compare` says of them.
    """
    verdicts = {row.name: row.verdict for row in rows}
    return {"better": names[1], "worse": names[0]}.get(verdicts.get(DECIDING, ""), "")


def winner_sentence(names: Sequence[str], rows: Sequence[Row]) -> str:
    """The same in words."""
    ahead = winner(names, rows)
    return f"Ahead: {ahead}." if ahead else "Neither is clearly ahead: chance may explain the difference in acceptance."


def _share_row(name: str, first: Estimate, second: Estimate) -> Row:
    difference = share_difference(first, second)
    return Row(name, "share", first, second, difference, _verdict(first, second, difference, better=1))


def _mean_row(name: str, first: Estimate, second: Estimate) -> Row:
    difference = median_difference(first, second)  # the same arithmetic: both have independent intervals
    return Row(name, "share", first, second, difference, _verdict(first, second, difference, better=1))


def _latency_row(name: str, first: Estimate, second: Estimate) -> Row:
    difference = median_difference(first, second)
    return Row(name, "ms", first, second, difference, _verdict(first, second, difference, better=-1))


def _verdict(first: Estimate, second: Estimate, difference: Estimate, better: int) -> str:
    if not (first.count and second.count) or difference.low <= 0 <= difference.high:
        return "no clear difference"
    return "better" if difference.value * better > 0 else "worse"
