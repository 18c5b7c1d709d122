"""Tables and figures of the benchmark of several suggestions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.quality.scoring import Score
from benchmarks.quality.tasks import Task

DEFAULT = "branches"
"""Default kind of alternatives."""


@dataclass(frozen=True, slots=True)
class Answer:
    """All suggestions of one row for one task.

    Attributes:
        scores: One score for each suggestion; the score of an empty text where there is no suggestion.
        first_ms: Time to the complete first suggestion.
        total_ms: Time to the last event, summed over the requests of the row.
        prompt_ms: Time to compute the prompt before.
    """

    task: Task
    row: str
    texts: tuple[str, ...]
    scores: tuple[Score, ...]
    parses: tuple[bool, ...]
    log_probabilities: tuple[float, ...]
    first_ms: float
    total_ms: float
    prompt_ms: float


Rows = dict[str, list[Answer]]
Figures = dict[str, float | None]


def by_row(answers: Sequence[Answer]) -> Rows:
    """Return the answers of each row in the order of the tasks."""
    rows: Rows = {}
    for answer in answers:
        rows.setdefault(answer.row, []).append(answer)
    return rows


def best(answers: Sequence[Answer], measure: Callable[[Score], float | None]) -> float | None:
    """Return the mean over tasks of the best value of a suggestion, in percent. Tasks without a value are left out."""
    values = [[value for score in answer.scores if (value := measure(score)) is not None] for answer in answers]
    found = [max(one) for one in values if one]
    return 100 * sum(found) / len(found) if found else None


def distinct_share(answers: Sequence[Answer]) -> float:
    """Return the number of different suggestions of each answer, blanks ignored, as a share of all suggestions."""
    offered = sum(len(answer.texts) for answer in answers)
    return sum(len({"".join(text.split()) for text in answer.texts}) for answer in answers) / max(offered, 1)


def time_ratio(answers: Sequence[Answer], one: Sequence[Answer], *, prompt: bool = False) -> float:
    """Return the time of a row over that of one suggestion; `prompt` adds the time of the prompt to both."""
    before = sum(answer.prompt_ms for answer in one) if prompt else 0.0
    return (before + sum(a.total_ms for a in answers)) / (before + sum(a.total_ms for a in one))


def print_tables(answers: list[Answer]) -> None:
    """Print one table of all rows and one of times by data set."""
    rows, console = by_row(answers), Console(width=140)
    table = Table(title=f"{len(rows['one'])} questions")
    columns = ("row", "offered", "time, prompt cached", "time", "first arrives", "exact", "similarity", "pass@k")
    for column in (*columns, "distinct", "parse"):
        table.add_column(column, justify="left" if column == "row" else "right")
    for row, part in rows.items():
        table.add_row(row, *_cells(part, rows["one"]))
    console.print(table)
    times = Table(title="time against one suggestion, prompt cached, by data set")
    sets = list(dict.fromkeys(answer.task.dataset for answer in answers))
    for column in ("row", *sets):
        times.add_column(column, justify="left" if column == "row" else "right")
    for row, part in rows.items():
        times.add_row(row, *(f"{time_ratio(_of(name, part), _of(name, rows['one'])):.2f}" for name in sets))
    console.print(times)


def _of(dataset: str, answers: Sequence[Answer]) -> list[Answer]:
    return [answer for answer in answers if answer.task.dataset == dataset]


def _cells(part: Sequence[Answer], one: Sequence[Answer]) -> list[str]:
    measures: list[Callable[[Score], float | None]] = [
        lambda s: s.exact_match,
        lambda s: s.edit_similarity,
        lambda s: s.passed,
    ]
    shares = [best(part, measure) for measure in measures]
    offered = sum(len(answer.texts) for answer in part)
    parsed = sum(sum(answer.parses) for answer in part) / max(offered, 1)
    return [
        f"{offered / len(part):.2f}",
        f"{time_ratio(part, one):.2f}",
        f"{time_ratio(part, one, prompt=True):.2f}",
        f"{_arrival(part, one):.3f}",
        *("" if share is None else f"{share:.1f}" for share in shares),
        f"{distinct_share(part):.3f}",
        f"{parsed:.3f}",
    ]


def _arrival(part: Sequence[Answer], one: Sequence[Answer]) -> float:
    """Return the time to the complete first suggestion over that of one suggestion alone."""
    return sum(a.first_ms for a in part) / sum(a.first_ms for a in one)


def figures(answers: list[Answer], kind: str = DEFAULT) -> Figures:
    """Return the figures by name. A figure without the name of a kind is of this kind of alternatives."""
    rows = by_row(answers)
    one = rows["one"]
    found: Figures = {}
    for row, part in rows.items():
        found |= _of_row(row, part, one)
    for name in (key for key in list(found) if key.endswith(("_k3", "_k5")) and kind in key):
        found[name.replace(f"{kind}_", "")] = found[name]

    def percent(part: Sequence[Answer]) -> float | None:
        exact = best(part, lambda s: s.exact_match)
        return None if exact is None else round(exact, 2)

    three, samples = rows[f"{kind}_3"], rows["samples_3"]
    offered = [(a, b) for a, b in zip(three, one, strict=True) if b.texts]
    found |= {
        "best_of_3_exact_match_gain": _gain(three, samples, lambda s: s.exact_match),
        "best_of_3_similarity_gain": _gain(three, samples, lambda s: s.edit_similarity),
        "pass_at_3_gain": _gain(three, samples, lambda s: s.passed),
        "distinct_share": round(distinct_share([*three, *rows[f"{kind}_5"]]), 4),
        "first_exact_match": percent(one),
        "greedy_exact_match": percent(rows["greedy"]),
        "first_is_one": round(sum(a.texts[:1] == b.texts for a, b in offered) / max(len(offered), 1), 4),
        "first_arrival_ratio": round(_arrival(three, one), 4),
        "speedup_over_samples": round(time_ratio(rows["plain_3"], three), 3),
        "speedup_over_drafted_samples": round(time_ratio(samples, three), 3),
    }
    return found | shared_starts(three)


def _of_row(row: str, part: Sequence[Answer], one: Sequence[Answer]) -> Figures:
    kind, _, count = row.rpartition("_")
    if not kind:
        return {}
    exact = best(part, lambda s: s.exact_match)
    passed = best(part, lambda s: s.passed)
    return {
        f"{kind}_time_ratio_k{count}": round(time_ratio(part, one, prompt=True), 3),
        f"{kind}_time_ratio_cached_prompt_k{count}": round(time_ratio(part, one), 3),
        f"{kind}_best_exact_match_k{count}": None if exact is None else round(exact, 2),
        f"{kind}_pass_at_k{count}": None if passed is None else round(passed, 2),
    }


def _gain(part: Sequence[Answer], beside: Sequence[Answer], measure: Callable[[Score], float | None]) -> float | None:
    ours, theirs = best(part, measure), best(beside, measure)
    return None if ours is None or theirs is None else round(ours - theirs, 2)


def shared_starts(answers: Sequence[Answer]) -> Figures:
    """Return how often, and for how many characters, the first suggestion and the shared start are right.

    Only answers with several suggestions count. A text is right if the document continues with it, trailing blanks
    ignored.
    """
    disagreeing = [answer for answer in answers if len(answer.texts) > 1]
    right = {"whole": 0.0, "shared": 0.0}
    characters = {"whole": 0.0, "shared": 0.0}
    for answer in disagreeing:
        shared = shared_start(answer.texts)
        for name, text in (("whole", answer.texts[0]), ("shared", shared)):
            if text.strip() and answer.task.reference.startswith(text.rstrip()):
                right[name] += 1
                characters[name] += len(text.rstrip())
    count = max(len(disagreeing), 1)
    return {"disagreeing": len(disagreeing)} | {
        f"{name}_{what}": round(value[name] / count, 3)
        for what, value in (("right_share", right), ("right_characters", characters))
        for name in value
    }


def shared_start(texts: Sequence[str]) -> str:
    """Return the common start of all texts, cut back to the end of a word."""
    first, last = min(texts), max(texts)  # the two that differ first, since all others lie between them
    count = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    shared = first[:count]
    rest = [text[len(shared) : len(shared) + 1] for text in texts]
    if shared and _in_word(shared[-1]) and any(_in_word(one) for one in rest):
        shared = shared.rstrip("_" + "".join(c for c in set(shared) if c.isalnum()))
    return shared


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"
