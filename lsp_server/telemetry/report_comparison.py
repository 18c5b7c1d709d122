"""The comparison of two reports: the difference of each figure, and whether chance may explain it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lsp_server.telemetry.report_figures import Estimate, Report, difference


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of both reports, and their difference with its interval.

    Attributes:
        unit: "share" or "ms".
        difference: The second minus the first; None if one of them has no records.
        verdict: "better" or "worse" for the second report, "no clear difference" if the interval contains zero, or
            "nothing to compare" without a difference.
    """

    name: str
    unit: str
    first: Estimate
    second: Estimate
    difference: Estimate | None
    verdict: str

    @property
    def figures(self) -> list[str]:
        """Both figures, their difference and its interval as texts."""
        both = [self._text(one.value) if one.count else "–" for one in (self.first, self.second)]
        change = self.difference
        if change is None:
            return [*both, "–", ""]
        return [*both, self._text(change.value), f"{self._text(change.low)} to {self._text(change.high)}"]

    def _text(self, value: float) -> str:
        return f"{100 * value:.1f} %" if self.unit == "share" else f"{value:.0f} ms"


DECIDING = "accepted of shown"
"""Name of the figure that decides which report is ahead."""


def compare(first: Report, second: Report) -> list[Row]:
    """Compare the acceptance, the kept text and the latency of two reports."""
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
    """Return the name of the report with the clearly higher acceptance, "" if chance may explain the difference."""
    verdicts = {row.name: row.verdict for row in rows}
    return {"better": names[1], "worse": names[0]}.get(verdicts.get(DECIDING, ""), "")


def winner_sentence(names: Sequence[str], rows: Sequence[Row]) -> str:
    """Return a sentence on which report is ahead."""
    ahead = winner(names, rows)
    if ahead:
        return f'"{ahead}" is ahead: a larger share of its suggestions was accepted.'
    counts = next(((row.first.count, row.second.count) for row in rows if row.name == DECIDING), (0, 0))
    missing = [f'"{name}"' for name, count in zip(names, counts, strict=True) if not count]
    if missing:
        return f"There is nothing to compare: no suggestion was shown with {' or '.join(missing)}."
    return "Neither is clearly ahead: chance may explain the difference in acceptance."


def _row(name: str, unit: str, first: Estimate, second: Estimate, better: int = 1) -> Row:
    """Return the row of two figures; `better` is −1 if a lower figure is better."""
    change = difference(first, second) if first.count and second.count else None
    return Row(name, unit, first, second, change, _verdict(change, better))


def _verdict(change: Estimate | None, better: int) -> str:
    if change is None:
        return "nothing to compare"
    if change.low <= 0 <= change.high:
        return "no clear difference"
    return "better" if change.value * better > 0 else "worse"
