"""Tables and figures of the quality benchmark."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.figures import rounded
from benchmarks.quality.scoring import Score


@dataclass(frozen=True, slots=True)
class Prediction:
    """One scored completion."""

    id: str
    dataset: str
    language: str
    row: str
    score: Score
    seconds: float


Measure = Callable[[Score], float | None]
MEASURES: dict[str, Measure] = {
    "exact_match_share": lambda score: score.exact_match,
    "edit_similarity": lambda score: score.edit_similarity,
    "first_line_share": lambda score: score.first_line,
    "pass_share": lambda score: score.passed,
    "errors_added_share": lambda score: score.added_errors,
}
"""Measures by their keys, in the order of the tables."""


def exact(score: Score) -> float:
    """Return the exact match of a score."""
    return score.exact_match


def mean(predictions: Iterable[Prediction], measure: Measure) -> float | None:
    """Return the mean of a measure over the predictions that have it, None where none has."""
    values = [value for p in predictions if (value := measure(p.score)) is not None]
    return sum(values) / len(values) if values else None


def print_tables(predictions: list[Prediction]) -> None:
    """Print one table for each data set: rows by language, in percent."""
    console = Console(width=120)
    for dataset in dict.fromkeys(p.dataset for p in predictions):
        of_set = [p for p in predictions if p.dataset == dataset]
        languages = sorted({p.language for p in of_set})
        table = Table(title=dataset)
        figures = ("records", "exact", "similarity", "first line", "pass@1", "more errors", "median s")
        for column in ("row", "language", *figures):
            table.add_column(column, justify="right" if column in figures else "left")
        for row in dict.fromkeys(p.row for p in of_set):
            of_row = [p for p in of_set if p.row == row]
            for language in ["all", *languages] if len(languages) > 1 else languages:
                part = [p for p in of_row if language in ("all", p.language)]
                table.add_row(row, language, *_cells(part))
        console.print(table)


def _cells(part: list[Prediction]) -> list[str]:
    shares = [mean(part, measure) for measure in MEASURES.values()]
    middle = f"{statistics.median(p.seconds for p in part):.2f}" if part else ""
    return [str(len(part)), *("" if share is None else f"{100 * share:.1f}" for share in shares), middle]


def by_set(predictions: list[Prediction]) -> dict[str, dict[str, dict[str, float | None]]]:
    """Return the number of records and the mean of each measure by data set and row; they are those of the tables."""
    found: dict[str, dict[str, dict[str, float | None]]] = {}
    for dataset, row in dict.fromkeys((p.dataset, p.row) for p in predictions):
        part = [p for p in predictions if (p.dataset, p.row) == (dataset, row)]
        means = {name: rounded(mean(part, measure), 4) for name, measure in MEASURES.items()}
        found.setdefault(dataset, {})[row] = {"records": len(part), **means}
    return found


Figures = dict[str, float | str | None]


def keys(predictions: list[Prediction]) -> Figures:
    """Return the figures by name. Two rows are compared only on tasks that both have answered."""

    def share(datasets: tuple[str, ...], row: str, beside: str, measure: Measure) -> float | None:
        other = {(p.dataset, p.id) for p in predictions if p.row == beside}
        same = [p for p in predictions if p.row == row and p.dataset in datasets and (p.dataset, p.id) in other]
        return mean(same, measure)

    def gain(datasets: tuple[str, ...], row: str, beside: str, measure: Measure) -> float | None:
        ours, theirs = share(datasets, row, beside, measure), share(datasets, beside, row, measure)
        return None if ours is None or theirs is None else round(100 * (ours - theirs), 2)

    def ratio(datasets: tuple[str, ...], row: str, beside: str, measure: Measure) -> float | None:
        ours, theirs = share(datasets, row, beside, measure), share(datasets, beside, row, measure)
        return round(ours / theirs, 3) if ours is not None and theirs else None

    def percent(dataset: str, measure: Measure) -> float | None:
        value = share((dataset,), "whole", "whole", measure)
        return None if value is None else round(100 * value, 2)

    healed = ("repo_context", "cursor_positions")
    replay = [p for p in predictions if p.dataset == "release_replay"]
    return {
        "humaneval_single_line_pass_at_1": percent("single_line", lambda s: s.passed),
        "release_replay_first_line": percent("release_replay", lambda s: s.first_line),
        "repo_context_exact_match": percent("repo_context", exact),
        "cursor_positions_exact_match": percent("cursor_positions", exact),
        "history_first_line_gain": gain(("release_replay",), "whole", "whole_no_history", lambda s: s.first_line),
        "history_places": sum(p.row == "whole_no_history" for p in predictions),
        **_offers(replay, "whole", "whole_unasked"),
        **_offers(replay, "whole_unasked", "whole"),
        "exact_match_gain": gain(("single_line",), "whole", "infill", exact),
        "w8a8_pass_at_1_change": gain(("single_line",), "whole", "whole_bf16", lambda s: s.passed),
        "context_exact_match_ratio": ratio(("repo_context",), "whole", "whole_no_context", exact),
        "context_similarity_worst_language": _worst_language(predictions, "whole", "whole_no_context"),
        "first_line_ratio_llama_cpp": ratio(("release_replay",), "whole", "infill", lambda s: s.first_line),
        "in_word_ratio_llama_cpp": ratio(("cursor_positions",), "whole", "infill", lambda s: s.first_line),
        "healing_exact_match_ratio": ratio(healed, "suffix_first_healed", "suffix_first", exact),
        "best_layout": _best_layout(predictions),
    }


def _offers(predictions: list[Prediction], row: str, beside: str) -> Figures:
    """Return how many first lines a row offers on the tasks that another row has answered too, and how many are right.

    A line is right if the document continues with it, even if it is only the start of a line.
    """
    others = {p.id: p.score for p in predictions if p.row == beside}
    found = [(p.score, others[p.id]) for p in predictions if p.row == row and p.id in others]
    return {
        f"{row}_offers": sum(score.offered > 0 for score, _ in found),
        f"{row}_right": sum(score.right > 0 for score, _ in found),
        f"{row}_right_alone": sum(score.right > 0 and not other.right for score, other in found),
        f"{row}_right_characters": sum(score.right for score, _ in found),
        f"{row}_offered_characters": sum(score.offered for score, _ in found),
    }


def _worst_language(predictions: list[Prediction], row: str, beside: str) -> float | None:
    """Return the smallest gain in edit similarity of a language of the repository contexts, in points."""
    of_set = [p for p in predictions if p.dataset == "repo_context"]
    gains = []
    for language in {p.language for p in of_set}:
        ours, theirs = (
            mean((p for p in of_set if p.language == language and p.row == name), lambda s: s.edit_similarity)
            for name in (row, beside)
        )
        if ours is not None and theirs is not None:
            gains.append(round(100 * (ours - theirs), 2))
    return min(gains, default=None)


def _best_layout(predictions: list[Prediction]) -> str | None:
    """Return the bare-model row with the most exact matches over the tasks that all such rows have answered."""
    rows = {p.row for p in predictions if p.row.startswith(("infill", "prefix_", "suffix_"))}
    answered = [{(p.dataset, p.id) for p in predictions if p.row == row} for row in rows]
    common = set.intersection(*answered) if len(rows) > 1 else set()
    shares = {
        row: mean((p for p in predictions if p.row == row and (p.dataset, p.id) in common), exact) or 0.0
        for row in rows
    }
    return max(sorted(shares), key=shares.__getitem__) if common else None
