"""Two reports side by side: what changed, and whether more than chance would change it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lsp_server.telemetry.report_data import Report
from lsp_server.telemetry.report_statistics import Estimate, difference


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
        _row(DECIDING, "share", first.acceptance, second.acceptance),
        *(
            _row(f"kept after {one.after_s} s", "share", one.share, other.share)
            for one, other in zip(first.remaining, second.remaining, strict=True)
        ),
        _row("median time to the whole answer", "ms", first.answer, second.answer, better=-1),
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


def _row(name: str, unit: str, first: Estimate, second: Estimate, better: int = 1) -> Row:
    """Both figures and their difference; `better` is −1 where less is better."""
    change = difference(first, second)
    return Row(name, unit, first, second, change, _verdict(first, second, change, better))


def _verdict(first: Estimate, second: Estimate, change: Estimate, better: int) -> str:
    if not (first.count and second.count) or change.low <= 0 <= change.high:
        return "no clear difference"
    return "better" if change.value * better > 0 else "worse"
