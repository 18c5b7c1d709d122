"""Counts the verdicts of benchmarks.joining, and prints them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.figures import percentile, ratio, rounded
from benchmarks.joining.shortest import Search
from benchmarks.joining.triples import Kind
from benchmarks.joining.verdicts import Searcher, Verdict


@dataclass(slots=True)
class Count:
    """Texts, and how many of them are kept. What the shortest insertion does not know is kept.

    Attributes:
        texts: Number of texts.
        product: Of these, those that the product keeps.
        insertion: Those that the shortest insertion keeps.
        lost: Those that only the product keeps.
        gained: Those that only the shortest insertion keeps.
        unknown: Those that the shortest insertion does not know.
    """

    texts: int = 0
    product: int = 0
    insertion: int = 0
    lost: int = 0
    gained: int = 0
    unknown: int = 0

    def add(self, product: Verdict, insertion: Verdict) -> None:
        """Count the verdicts on one text."""
        self.texts += 1
        by_product, by_insertion = product is not Verdict.CUT, insertion is not Verdict.CUT
        self.product += by_product
        self.insertion += by_insertion
        self.lost += by_product and not by_insertion
        self.gained += by_insertion and not by_product
        self.unknown += insertion is Verdict.UNKNOWN

    def figures(self) -> dict[str, int]:
        """Return the counts by name."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Asked:
    """A text that both were asked about."""

    language: str
    kind: Kind
    invoked: bool
    product: Verdict
    insertion: Verdict


def counts(asked: Iterable[Asked], *groups: str) -> dict[str, Count]:
    """Return the counts of each group; groups are names of attributes, "" for all texts in one."""
    found: dict[str, Count] = defaultdict(Count)
    for each in asked:
        names = {"": "all", "language": each.language, "kind": each.kind.value}
        names["invoked"] = "manual" if each.invoked else "automatic"
        found[", ".join(names[group] for group in groups)].add(each.product, each.insertion)
    return dict(found)


def cost(searches: Sequence[Search]) -> dict[str, float | None]:
    """Return steps and processor time of one search."""
    found: dict[str, float | None] = {}
    for name, values in (("steps", [each.steps for each in searches]), ("ms", [each.ms for each in searches])):
        found |= {
            f"{name}_median": rounded(percentile(values, 0.5), 2),
            f"{name}_p95": rounded(percentile(values, 0.95), 2),
            f"{name}_max": rounded(max(values, default=None), 2),
        }
    return found


def print_tables(asked: Sequence[Asked], searchers: Mapping[str, Searcher], console: Console) -> None:
    """Print what each keeps by language and by kind of text, and what a search costs."""
    whole = counts([each for each in asked if each.kind is Kind.WHOLE], "language")
    columns = ("texts", "product", "insertion", "lost", "gained", "unknown")
    by_language = Table("language", *columns)
    references = Table("language", "references", "product", "insertion")
    for language, count in sorted(counts(asked, "language").items()):
        by_language.add_row(language, *map(str, count.figures().values()))
        kept = whole.get(language, Count())
        references.add_row(language, *map(str, (kept.texts, kept.product, kept.insertion)))
    by_kind = Table("text", *columns)
    for kind, count in counts(asked, "kind", "invoked").items():
        by_kind.add_row(kind, *map(str, count.figures().values()))
    searched = Table("language", "searches", "steps: median / p95 / max", "ms: median / p95 / max", "table, ms")
    for language, each in sorted(searchers.items()):
        costs = [f"{value:.0f}" for value in cost(each.shortest.searches).values() if value is not None]
        halves = (" / ".join(costs[:3]), " / ".join(costs[3:]))
        searched.add_row(language, str(len(each.shortest.searches)), *halves, str(round(each.table_ms)))
    for table in (by_language, references, by_kind, searched):
        console.print(table)


def summary(asked: Sequence[Asked], searchers: Mapping[str, Searcher]) -> dict[str, Any]:
    """Return the figures of the last line."""
    everything = counts(asked, "").get("all", Count())
    references = counts([each for each in asked if each.kind is Kind.WHOLE], "").get("all", Count())
    searches = [search for each in searchers.values() for search in each.shortest.searches]
    return {
        **everything.figures(),
        "unknown_share": rounded(ratio(everything.unknown, everything.texts), 4),
        "references": references.texts,
        "references_product": references.product,
        "references_insertion": references.insertion,
        "searches": len(searches),
        "searches_at_bound": sum(each.is_bounded for each in searches),
        **cost(searches),
        "table_ms_max": rounded(max((each.table_ms for each in searchers.values()), default=None), 1),
        "by_language": {name: count.figures() for name, count in counts(asked, "language").items()},
        "by_kind": {name: count.figures() for name, count in counts(asked, "kind", "invoked").items()},
    }
