"""First lines that two models write at the same places, each in the product's engine with prompts of its own length."""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import read_answers
from benchmarks.quality.rows import ROWS
from benchmarks.quality.scoring import score
from benchmarks.quality.sets import package_of
from benchmarks.quality.tasks import Task
from benchmarks.two_models.steps import show
from benchmarks.two_models.written import with_prompts
from completion.cancellation import CancelToken
from completion.engine import Engine, product_settings
from completion.model.loading import LoadedModel
from completion.request import Closing, WorkspaceUpdate
from completion.workspace.context import WorkspaceContext

CONFIDENCE = 0.9
"""Share of the samples of packages whose difference lies in the printed interval."""
SAMPLES = 4000
"""Number of these samples."""
_ROW = "whole"


@dataclass(frozen=True, slots=True)
class Place:
    """A place and what both models, the small one first, wrote there.

    Attributes:
        is_right: Whether the first line is right.
        ms: Wait for the text, with a prompt that was computed before.
        prompt_ms: Time of the prompt.
    """

    package: str
    dataset: str
    is_right: tuple[bool, bool]
    ms: tuple[float, float]
    prompt_ms: tuple[float, float]

    @classmethod
    def of(cls, task: Task, answers: dict[str, Any]) -> Place:
        """Return the place of a task with its answers; see `answers_at`."""
        small, larger = (score(text, task.reference, None).first_line > 0 for text in answers["texts"])
        times = (tuple(answers[name]) for name in ("ms", "prompt_ms"))
        return cls(package_of(task.id), task.dataset, (small, larger), *times)


class Contender:
    """A model in an engine with the product's settings, or with prompts of full length however slow the machine is."""

    def __init__(self, loaded: LoadedModel, *, full_prompts: bool) -> None:
        settings = with_prompts(product_settings(), 1.0) if full_prompts else product_settings()
        self._engine, self._context_tokens = Engine(loaded, settings), settings.budget.context_tokens

    def answer(self, task: Task) -> tuple[str, float, float]:
        """Return a text, the wait for it, and the time of its prompt, in milliseconds."""
        files = WorkspaceContext()
        files.update(WorkspaceUpdate("", task.files))
        request = ROWS[_ROW].request(task, files, self._context_tokens)
        started = time.perf_counter()
        self._engine.prepare(request, CancelToken())
        prepared = time.perf_counter()
        *_, last = self._engine.complete(request, CancelToken())
        ended = time.perf_counter()
        self._engine.forget(Closing(documents=(request.document,)))  # the next one's prompt follows the measured pace
        text = task.inserted(last.suggestions[0]) if last.suggestions else ""
        return text, 1e3 * (ended - prepared), 1e3 * (prepared - started)


def answers_at(
    tasks: Sequence[Task], make: Callable[[], Sequence[Contender]], out: Path | None, models: str
) -> Iterator[dict[str, Any]]:
    """Yield what both models write at each place, and the times of it.

    What a file has of these models is not made again; what is new is added to it at once.
    """
    made, contenders = read_answers(out, models), list[Contender]()
    with (out or Path(os.devnull)).open("a", encoding="utf-8") as file:
        for number, task in enumerate(tasks):
            if (task.id, _ROW) not in made:
                if not contenders:
                    contenders += make()
                    for each in contenders:
                        each.answer(task)  # measures the pace of prompts
                texts, ms, prompt_ms = zip(*(each.answer(task) for each in contenders), strict=True)
                answers = {"texts": texts, "ms": ms, "prompt_ms": prompt_ms}
                made[task.id, _ROW] = {"model": models, "id": task.id, "row": _ROW, **answers}
                print(json.dumps(made[task.id, _ROW]), file=file, flush=True)
            show(f"places {number + 1}/{len(tasks)}")
            yield made[task.id, _ROW]


def choice_figures(places: Sequence[Place]) -> dict[str, object]:
    """Print a table of right first lines, and return its figures: of all places, and of each data set."""
    names = ("places", "small", "larger", "only_small", "only_larger", "difference", "lower", "upper")
    ordered = sorted(places, key=lambda place: place.dataset)
    groups = {"all": ordered, **{name: list(part) for name, part in groupby(ordered, lambda place: place.dataset)}}
    print(f"{'right first lines':20}" + "".join(f"{name:>12}" for name in names))
    found = dict[str, object]()
    for name, part in groups.items():
        found[name] = figures = dict(zip(names, (*_counts(part), *difference(part)), strict=True))
        print(f"{name:20}" + "".join(f"{value:>12}" for value in figures.values()))
    for times in ("ms", "prompt_ms"):
        pairs = [getattr(place, times) for place in places]
        found[f"{times}_p50"] = [round(statistics.median(each)) for each in zip(*pairs, strict=True)]
        print(f"{times}, median: {found[f'{times}_p50']}")
    return found


def _counts(places: Sequence[Place]) -> tuple[int, ...]:
    pairs = [place.is_right for place in places]
    only = (pairs.count((True, False)), pairs.count((False, True)))
    return (len(pairs), *(sum(each) for each in zip(*pairs, strict=True)), *only)


def difference(places: Sequence[Place]) -> tuple[float, float, float]:
    """Return by how much larger the larger model's share of right lines is, and the ends of an interval.

    The interval is that of samples of packages with replacement (bootstrap): places of one package are alike.
    """
    packages = sorted({place.package for place in places})
    gained, counts = (np.zeros(len(packages), dtype=np.int64) for _ in range(2))
    for place in places:
        at, (small, larger) = packages.index(place.package), place.is_right
        gained[at], counts[at] = gained[at] + larger - small, counts[at] + 1
    drawn = np.random.default_rng(0).integers(len(packages), size=(SAMPLES, len(packages)))
    shares = gained[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    ends = np.quantile(shares, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    share, lower, upper = (round(float(each), 3) for each in (gained.sum() / counts.sum(), *ends))
    return share, lower, upper
