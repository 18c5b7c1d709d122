"""Ways to choose among proposals, and the figures of each."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.gate.__main__ import auc
from benchmarks.next_edit.replay import Outcome, State
from benchmarks.next_edit.training import Row, folds, half, judged_by, train_gate
from completion.edits import NextEdit
from completion.next_edit.finder import without_overlaps
from completion.next_edit.gate import JUDGED_FROM, SHOWN_FROM, SURE_FROM, Gate
from completion.next_edit.rewrites import Candidate

THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(2, 19))
"""Thresholds to choose from."""
MIN_PRECISION = 0.65
"""Precision for which a threshold is chosen: the bound of 0.55 and a margin for other packages."""
MIN_QUIET_RATE = 0.97
"""Quiet rate for which a threshold is chosen."""

SAMPLES = 1_000
"""Number of samples of the packages."""

Figures = dict[str, float | None]
"""Figures by name, None where there is no data."""
Key = tuple[int, tuple[str, ...], tuple[str, ...]]
"""What stays the same of a proposal while lines above it change."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to choose: a number for each proposal, and the number from which it is shown, which may differ by row."""

    chance: Callable[[Row], float]
    shown_from: Callable[[Row], float]

    def shows(self, row: Row) -> bool:
        """Return whether a proposal is shown."""
        return self.chance(row) >= self.shown_from(row)


@dataclass(frozen=True, slots=True)
class Visible:
    """What a state shows.

    Attributes:
        new: Those of `rows` that no earlier state of the file showed.
    """

    state: State
    rows: list[Row]
    new: list[Row]


def constant(value: float) -> Callable[[Row], float]:
    """Return a function that gives the same number for every row."""
    return lambda _: value


def ratio(row: Row) -> float:
    """Return the model's log-likelihood ratio of a proposal, the smallest number if it did not judge."""
    return row.judgement.ratio if row.judgement else -math.inf


def by_rules(gate: Gate) -> Callable[[Row], float]:
    """Return the probabilities of a gate by the rules alone."""
    return lambda row: gate.rules.probability(row.proposal.rule_features())


def by_both(gate: Gate) -> Callable[[Row], float]:
    """Return the probabilities of a gate: by the rules where they are sure, low where the model did not judge."""
    rules, judged = by_rules(gate), judged_by(gate.rules)

    def chance(row: Row) -> float:
        alone = rules(row)
        if alone >= SURE_FROM:
            return alone
        return gate.both.probability(judged(row)) if row.judgement else JUDGED_FROM * alone

    return chance


def crossed(
    rows: Sequence[Row], chance: Callable[[Gate], Callable[[Row], float]], shown_from: Callable[[Row], float]
) -> Way:
    """Return the way of gates that were trained on the half without a proposal's package.

    Raises:
        SystemExit: One half has no proposals.
    """
    others = [[row for row in rows if half(row) != own] for own in (0, 1)]
    if not all(others):
        raise SystemExit(
            f"The halves of the packages have {len(others[1])} and {len(others[0])} proposals. A gate is trained on one"
            " half and tested on the other: give more data, or test the shipped gate with --shipped."
        )
    chances = [chance(train_gate(training)) for training in others]
    return Way(lambda row: chances[half(row)](row), shown_from)


def chosen_thresholds(replays: Sequence[Sequence[State]], rows: Sequence[Row]) -> tuple[float, float]:
    """Return the thresholds for both halves of the packages, each chosen on the other half only.

    Gates of parts of that half give the probabilities, so none of them is trained on the packages that it is tested on.
    """
    return _chosen(replays, rows, 1), _chosen(replays, rows, 0)


def _chosen(replays: Sequence[Sequence[State]], rows: Sequence[Row], own: int) -> float:
    """Return the lowest threshold that keeps both bounds in one half, the highest one if none does."""
    rows = [row for row in rows if half(row) == own]
    known = {row.state.record for row in rows}
    replays = [replay for replay in replays if replay and replay[0].record in known]
    chances: dict[int, float] = {}
    for training, testing in folds(rows):
        chance = by_both(train_gate(training))
        chances |= {id(row): chance(row) for row in testing}
    rows = [row for row in rows if id(row) in chances]  # none if all are in one part of the packages
    for threshold in THRESHOLDS:
        figures = report(replays, rows, Way(lambda row: chances[id(row)], constant(threshold)))
        precision, quiet_rate = (figures[name] or 0.0 for name in ("precision_exact", "quiet_rate"))
        if precision >= MIN_PRECISION and quiet_rate >= MIN_QUIET_RATE:
            return threshold
    return THRESHOLDS[-1]


def shipped() -> Way:
    """Return the way of the gate that ships."""
    return Way(by_both(Gate.shipped()), constant(SHOWN_FROM))


def rows_by_state(rows: Sequence[Row]) -> defaultdict[tuple[str, int], list[Row]]:
    """Return the proposals of each state, by the names of its record and its last change."""
    found: defaultdict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in rows:
        found[row.state.record, row.state.number].append(row)
    return found


def visible(replay: Sequence[State], rows: Mapping[tuple[str, int], list[Row]], way: Way) -> Iterator[Visible]:
    """Yield what each state of a replay shows; a proposal that was shown once is not new again."""
    seen: set[Key] = set()
    for state in replay:
        here = shown(rows.get((state.record, state.number), ()), way)
        names = [key(state, row.proposal.candidate) for row in here]
        yield Visible(state, here, [row for row, name in zip(here, names, strict=True) if name not in seen])
        seen.update(names)


def report(replays: Sequence[Sequence[State]], rows: Sequence[Row], way: Way) -> Figures:
    """Return the figures of one way to choose."""
    return _figures(_counts(replays, rows, way))


def resampled(replays: Sequence[Sequence[State]], rows: Sequence[Row], way: Way) -> dict[str, list[float] | None]:
    """Return the central 90 % of two figures over samples of the packages: changes of one package are alike.

    Samples without the figure are left out. It is None where none has it.
    """
    by_package: defaultdict[str, list[Sequence[State]]] = defaultdict(list)
    for replay in replays:
        if replay:
            by_package[replay[0].package].append(replay)
    counts = [_counts(each, rows, way) for each in by_package.values()] or [Counter()]
    random_ = random.Random(SAMPLES)
    samples = [_figures(sum(random_.choices(counts, k=len(counts)), Counter())) for _ in range(SAMPLES)]
    found = {
        name: [value for sample in samples if (value := sample[name]) is not None]
        for name in ("precision_exact", "coverage_exact")
    }
    return {
        f"{name}_90": np.quantile(values, (0.05, 0.95)).round(3).tolist() if values else None
        for name, values in found.items()
    }


def errors_by_kind(replays: Sequence[Sequence[State]], rows: Sequence[Row], way: Way) -> Counter[str]:
    """Return how many wrong proposals are shown, by what became of their lines and by the rules that made them."""
    by_state = rows_by_state(rows)
    new = (row for replay in replays for each in visible(replay, by_state, way) for row in each.new)
    return Counter(
        f"{row.outcome}: {'+'.join(sorted(row.proposal.candidate.kinds))}"
        for row in new
        if row.outcome is not Outcome.EXACT
    )


def _counts(replays: Sequence[Sequence[State]], rows: Sequence[Row], way: Way) -> Counter[str]:
    by_state = rows_by_state(rows)
    counts: Counter[str] = Counter()
    for replay in replays:
        done: set[int] = set()
        for each in visible(replay, by_state, way):
            state, here = each.state, each.rows
            done |= state.covered([row.proposal.candidate for row in here if row.outcome is Outcome.EXACT])
            counts.update(row.outcome for row in each.new)
            counts["complete"] += not state.later
            counts["quiet"] += not state.later and not here
        counts["later"] += len({each.number for state in replay for each in state.later})
        counts["covered"] += len(done)
    return counts


def _figures(counts: Counter[str]) -> Figures:
    exact, place = counts[Outcome.EXACT], counts[Outcome.PLACE]
    count = exact + place + counts[Outcome.WRONG]
    return {
        "shown": count,
        "exact": exact,
        "precision_exact": share(exact, count, 3),
        "precision_place": share(exact + place, count, 3),
        "later_changes": counts["later"],
        "coverage_exact": share(counts["covered"], counts["later"], 4),
        "complete_files": counts["complete"],
        "quiet_rate": share(counts["quiet"], counts["complete"], 3),
    }


def share(part: int, whole: int, digits: int) -> float | None:
    """Return a share, rounded; None of nothing."""
    return round(part / whole, digits) if whole else None


def ranking(rows: Sequence[Row], ways: Mapping[str, Way], best: str) -> Figures:
    """Return how well right proposals rank above others; those that the model does not judge rank by the rules."""
    first = [row for row in rows if row.is_first]
    right = np.array([row.is_right for row in first])
    judged = sum(row.judgement is not None for row in first)
    figures: Figures = {"proposals": len(first), "right": int(right.sum()), "judged": judged}
    for name, way in (("judge_auc", ways[best]), ("rules_auc", ways["rules_gate"])):
        figures[name] = _auc(np.array([way.chance(row) for row in first]), right)
    return figures


def _auc(values: npt.NDArray[np.float64], right: npt.NDArray[np.float64]) -> float | None:
    """Return how often a right value is above a wrong one, None if all are right or all are wrong."""
    return round(auc(values, right), 4) if 0 < right.sum() < len(right) else None


def shown(rows: Sequence[Row], way: Way) -> list[Row]:
    """Return what is shown of the proposals of one state."""
    edits = {
        id(row): NextEdit(candidate.line, candidate.old, candidate.new, way.chance(row))
        for row in rows
        if way.shows(row) and (candidate := row.proposal.candidate)
    }
    kept = without_overlaps(list(edits.values()))
    return [row for row in rows if id(row) in edits and edits[id(row)] in kept]


def key(state: State, candidate: Candidate) -> Key:
    """Return what stays the same of a proposal while lines above it change."""
    return len(state.elsewhere or state.lines) - candidate.line, candidate.old, candidate.new
