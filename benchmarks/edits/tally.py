"""Results of each way to reuse a cache, by kind of edit, compared with full prefill."""

from __future__ import annotations

import difflib
import itertools
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from rich.table import Table

from benchmarks.edits.sessions import Kind
from completion.cache.kv_session import SessionSettings
from completion.request import CacheMode, Layout
from drafting.arrays import FloatArray

_COLUMNS = (
    "computed_share",
    "ms",
    "first_token_agreement",
    "argmax_agreement",
    "kl",
    "same_completion",
    "typed_match",
    "typed_similarity",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One way to update a cache."""

    name: str
    mode: CacheMode
    repair_tokens: int = 0


ROWS = (
    Row("full", CacheMode.OFF),
    Row("prefix", CacheMode.EXACT),
    Row("pie", CacheMode.PIE, SessionSettings().repair_tokens),
    Row("pie without repair", CacheMode.PIE, 0),
)


@dataclass(slots=True)
class Outcome:
    """Result of one row for one request.

    Attributes:
        computed: Tokens that went through the model.
        prompt: Tokens of the prompt.
        ms: Time to the logits of the first token.
        first: The first token.
        text: The completed line.
        exact: Whether the cache is equal to that of a fresh prefill.
    """

    computed: int
    prompt: int
    ms: float
    logits: FloatArray = field(repr=False)
    first: int
    text: str
    exact: bool


def divergence(reference: FloatArray, other: FloatArray) -> float:
    """Return KL(reference ‖ other) of two rows of logits, in nats."""
    p, q = (row - row.max() - np.log(np.exp(row - row.max()).sum()) for row in (reference, other))
    return float(np.sum(np.exp(p) * (p - q)))


class Tally:
    """Outcomes of all rows by kind of edit."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, Kind], list[tuple[Outcome, Outcome | None, str]]] = defaultdict(list)

    def add(self, kind: Kind, row: Row, outcome: Outcome, full: Outcome | None, typed: str) -> None:
        """Add one outcome, with the outcome of full prefill where there is one."""
        self._rows[row.name, kind].append((outcome, full, typed))

    def summary(self, row: Row, kinds: Iterable[Kind]) -> dict[str, float]:
        """Return the figures of one row over these kinds."""
        every = [case for kind in kinds for case in self._rows[row.name, kind]]
        cases = [(outcome, full, typed) for outcome, full, typed in every if full is not None]
        if not cases:
            return {}
        return {
            "requests": len(every),
            "compared": len(cases),
            "computed_share": sum(o.computed for o, _, _ in every) / sum(o.prompt for o, _, _ in every),
            "computed_per_request": statistics.mean(o.computed for o, _, _ in every),
            "ms": statistics.median(o.ms for o, _, _ in every),
            "on_exact_cache": statistics.mean(o.exact for o, _, _ in every),
            "kl_on_exact_cache": max((divergence(f.logits, o.logits) for o, f, _ in cases if o.exact), default=0.0),
            "time_ratio_full": statistics.median(o.ms / f.ms for o, f, _ in cases),
            "first_token_agreement": statistics.mean(o.first == f.first for o, f, _ in cases),
            "argmax_agreement": statistics.mean(int(o.logits.argmax()) == int(f.logits.argmax()) for o, f, _ in cases),
            "kl": statistics.mean(divergence(f.logits, o.logits) for o, f, _ in cases),
            "same_completion": statistics.mean(o.text == f.text for o, f, _ in cases),
            "typed_match": statistics.mean(o.text.rstrip() == typed.rstrip() for o, _, typed in cases),
            "typed_similarity": statistics.mean(
                difflib.SequenceMatcher(None, o.text, typed, autojunk=False).ratio() for o, _, typed in cases
            ),
        }

    def table(self, layout: Layout) -> Table:
        """Return a table of all rows and kinds."""
        table = Table("row", "kind", "requests", *_COLUMNS, title=f"layout {layout.value}")
        for row, kind in itertools.product(ROWS, Kind):
            figures = self.summary(row, [kind])
            if figures:
                cells = [f"{figures[column]:.3f}" for column in _COLUMNS]
                table.add_row(row.name, kind.value, str(int(figures["requests"])), *cells)
        return table
