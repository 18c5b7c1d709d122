"""Rules that choose between the texts of two models: how many first lines are right, and the wait for them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.quality.scoring import Score, first_line, score
from benchmarks.quality.sets import half_of
from benchmarks.quality.tasks import Task
from benchmarks.two_models.listening import agreed
from benchmarks.two_models.speed import Costs

QUARTER = 0.25
"""Share of the places at which a rule may ask the larger model in its second row."""
BOTH = ("small", "larger")
"""Names of both models."""
Figures = dict[str, object]


@dataclass(frozen=True, slots=True)
class Way:
    """What one way answers at a place.

    Attributes:
        text: Its text.
        score: Score of the text.
        log_probability: Log-probability of the text by the model that wrote it.
        ms: Time of its steps, with a cached prompt.
        measured_ms: Time that the request took.
    """

    text: str
    score: Score
    log_probability: float
    ms: float
    measured_ms: float

    @property
    def line(self) -> str:
        """First line of the text."""
        return first_line(self.text)


@dataclass(frozen=True, slots=True)
class Place:
    """A place and what each way answers there.

    Attributes:
        dataset: Data set of the place.
        half: Half of the packages that it belongs to.
        small: The small model.
        larger: The larger model.
        drafted: The larger model, which drafts the small one's text first.
        cascade: The more certain one of both at each token, with the small one's text as the first draft.
        judged_small: Log-probability of the small one's text by the larger one.
        judged_larger: That of its own text, in the same way.
        pass_ms: Time of the pass that judges the small one's text.
        measured_pass_ms: Time that it took.
        agreed: Number of the small one's first tokens that are the larger one's greedy ones.
        tokens: Number of the small one's tokens.
        prompt_ms: Time of the prompt if nothing of it is cached, by model.
    """

    dataset: str
    half: int
    small: Way
    larger: Way
    drafted: Way
    cascade: Way
    judged_small: float
    judged_larger: float
    pass_ms: float
    measured_pass_ms: float
    agreed: int
    tokens: int
    prompt_ms: dict[str, float]

    @classmethod
    def of(cls, task: Task, found: dict[str, Any], step_ms: Mapping[str, Mapping[int, float]]) -> Place:
        """Return the place of a task with its answers; see `places.Pair`. Times are those of their steps."""
        costs = {model: Costs(times) for model, times in step_ms.items()}
        most_rows = {model: max(times) for model, times in step_ms.items()}
        ways = {
            name: Way(
                each["text"],
                score(each["text"], task.reference, None),
                each["log_probability"] if each["text"].strip() else -math.inf,
                sum(costs[model].full(rows) for model, rows in each["passes"]),
                each["ms"],
            )
            for name, each in found["answers"].items()
        }
        small, larger = found["judged"]
        return cls(
            task.dataset,
            half_of(task.id),
            **ways,
            judged_small=small["log_probability"] if ways["small"].text.strip() else -math.inf,
            judged_larger=larger["log_probability"] if ways["larger"].text.strip() else -math.inf,
            pass_ms=costs["larger"].full(1 + len(small["tokens"])),
            measured_pass_ms=small["ms"],
            agreed=agreed(found["answers"]["larger"]["tokens"], small["tokens"]),
            tokens=len(small["tokens"]),
            prompt_ms={
                model: found["prompt_tokens"] * costs[model].full(rows) / rows for model, rows in most_rows.items()
            },
        )

    @property
    def group(self) -> str:
        """How much of the small one's text the larger one accepts as drafts."""
        if self.agreed == self.tokens:
            return "whole text" if self.tokens else "no text"
        return "no token" if not self.agreed else "1 or 2 tokens" if self.agreed < 3 else "3 tokens and more"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a rule gives at a place.

    Attributes:
        score: Score of the text.
        ms: Wait for it, with a cached prompt.
        models: Models that have computed the prompt for it.
        asked: Whether the larger model has written a text.
    """

    score: Score
    ms: float
    models: tuple[str, ...]
    asked: bool


Rule = Callable[[Place], Outcome]


def _small(place: Place) -> Outcome:
    return Outcome(place.small.score, place.small.ms, ("small",), asked=False)


def _larger(place: Place) -> Outcome:
    return Outcome(place.larger.score, place.larger.ms, ("larger",), asked=True)


def _drafted(place: Place) -> Outcome:
    return Outcome(place.drafted.score, place.small.ms + place.drafted.ms, BOTH, asked=True)


def _cascade(place: Place) -> Outcome:
    return Outcome(place.cascade.score, place.small.ms + place.cascade.ms, BOTH, asked=True)


def _likelier_by_larger(place: Place) -> Outcome:
    way = place.small if place.judged_small >= place.judged_larger else place.larger
    return Outcome(way.score, place.small.ms + place.drafted.ms, BOTH, asked=True)


def _likelier_by_own(place: Place) -> Outcome:
    way = place.small if place.small.log_probability >= place.larger.log_probability else place.larger
    return Outcome(way.score, place.small.ms + place.drafted.ms, BOTH, asked=True)


def deferral(threshold: float) -> Rule:
    """Return the rule that keeps the small one's text unless its own log-probability is under a threshold."""
    return lambda place: _small(place) if place.small.log_probability >= threshold else _drafted(place)


def judge(threshold: float) -> Rule:
    """Return the rule that keeps the small one's text unless the larger one's log-probability of it is under one."""

    def rule(place: Place) -> Outcome:
        if place.judged_small >= threshold:
            return Outcome(place.small.score, place.small.ms + place.pass_ms, BOTH, asked=False)
        return _drafted(place)

    return rule


def chosen_threshold(
    places: Sequence[Place], values: Sequence[float], rule: Callable[[float], Rule], most_asked: float = 1.0
) -> float:
    """Return the lowest threshold with which most characters are right, if the larger model is asked that often."""
    best, found = -math.inf, -1
    for threshold in sorted({-math.inf, *values, math.inf}):
        outcomes = [rule(threshold)(place) for place in places]
        right = sum(outcome.score.right for outcome in outcomes)
        if right > found and sum(outcome.asked for outcome in outcomes) <= most_asked * len(outcomes):
            best, found = threshold, right
    return best


def rules(chosen_on: Sequence[Place]) -> dict[str, Rule]:
    """Return the rules by name; their thresholds are chosen on some places."""
    own = [place.small.log_probability for place in chosen_on]
    judged = [place.judged_small for place in chosen_on]
    return {
        "small": _small,
        "larger": _larger,
        "larger, small one's text as its draft": _drafted,
        "likelier by the larger model": _likelier_by_larger,
        "likelier by each one's own": _likelier_by_own,
        "more certain one at each token": _cascade,
        "deferral": deferral(chosen_threshold(chosen_on, own, deferral)),
        "deferral, a quarter": deferral(chosen_threshold(chosen_on, own, deferral, QUARTER)),
        "judge": judge(chosen_threshold(chosen_on, judged, judge)),
        "judge, a quarter": judge(chosen_threshold(chosen_on, judged, judge, QUARTER)),
    }


def choice_figures(places: Sequence[Place]) -> Figures:
    """Print the tables, and return the figures of half 1 by rule."""
    chosen_on, reported = ([place for place in places if place.half == half] for half in (0, 1))
    if not reported:
        raise SystemExit("There is no place of half 1. Raise --limit.")
    columns = ("right", "characters", "offered", "asked", "ms p50", "ms mean", "cold mean")
    print(f"{f'{len(reported)} places of half 1':42}" + "".join(f"{column:>12}" for column in columns))
    found: Figures = {}
    for name, rule in rules(chosen_on).items():
        figures = rule_figures(reported, rule)
        print(f"{name:42}" + "".join(f"{value:>12}" for value in figures.values()))
        found[name] = figures
    groups = {"both halves": list(places), "all": reported}
    for key in ("dataset", "group"):
        for name in sorted({getattr(place, key) for place in reported}):
            groups[name] = [place for place in reported if getattr(place, key) == name]
    found["measured_ms_p50"] = measured(reported)
    print(f"measured, ms p50: {found['measured_ms_p50']}")
    print(f"\n{'':42}{'places':>12}{'small':>12}{'larger':>12}{'both':>12}{'only small':>12}{'only larger':>12}")
    found["groups"] = {name: pair_figures(part) for name, part in groups.items()}
    for name, part in groups.items():
        print(f"{name:42}" + "".join(f"{value:>12}" for value in pair_figures(part).values()))
    return found


def rule_figures(places: Sequence[Place], rule: Rule) -> dict[str, float]:
    """Return the figures of a rule over places."""
    outcomes = [rule(place) for place in places]
    waits = [outcome.ms for outcome in outcomes]
    cold = [
        outcome.ms + sum(place.prompt_ms[model] for model in outcome.models)
        for place, outcome in zip(places, outcomes, strict=True)
    ]
    return {
        "right": sum(outcome.score.first_line > 0 for outcome in outcomes),
        "right_characters": sum(outcome.score.right for outcome in outcomes),
        "offered_characters": sum(outcome.score.offered for outcome in outcomes),
        "asked_share": round(sum(outcome.asked for outcome in outcomes) / len(outcomes), 2),
        "ms_p50": round(statistics.median(waits)),
        "ms_mean": round(statistics.mean(waits)),
        "cold_ms_mean": round(statistics.mean(cold)),
    }


def measured(places: Sequence[Place]) -> dict[str, int]:
    """Return the medians of what requests took, and of the pass that judges the small model's text."""
    ways = ("small", "larger", "drafted", "cascade")
    times = {way: [getattr(place, way).measured_ms for place in places] for way in ways}
    times["judging pass"] = [place.measured_pass_ms for place in places if place.tokens]
    return {way: round(statistics.median(found or [0.0])) for way, found in times.items()}


def pair_figures(places: Sequence[Place]) -> dict[str, int]:
    """Return how many first lines each model has right, alone and together."""
    pairs = [(place.small.score.first_line > 0, place.larger.score.first_line > 0) for place in places]
    return {
        "places": len(pairs),
        "small": sum(small for small, _ in pairs),
        "larger": sum(larger for _, larger in pairs),
        "both": sum(small and larger for small, larger in pairs),
        "only_small": sum(small and not larger for small, larger in pairs),
        "only_larger": sum(larger and not small for small, larger in pairs),
    }
