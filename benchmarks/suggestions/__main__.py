"""`python -m benchmarks.suggestions`: cost and value of several suggestions for one request.

Each task of the open data is answered with one suggestion, with that of greedy decoding (no search for a likelier
line), with k exact branches, with k superposed drafts, and with k nucleus samples, which are k requests. All rows have
the same grammar, filters and drafting and start with the same learned drafters. The row `plain` is nucleus sampling
without drafting, one token per forward pass, as in the published figure.

The benchmark reports each time to the last suggestion twice. `time_ratio` includes the computation of the prompt.
`time_ratio_cached_prompt` does not, because the prompt is cached during typing. `speedup_over_samples` compares with
plain samples, `speedup_over_drafted_samples` with drafted ones, both with a cached prompt. Both are of the kind of
alternatives that `--alternatives` names.

`--out FILE` writes each answer at once. A later run of the same model with the same file makes only
the missing answers.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.data import read_answers
from benchmarks.grammar.grammars import GRAMMARS
from benchmarks.quality.rows import ROWS as QUALITY_ROWS
from benchmarks.quality.scoring import Score, score
from benchmarks.quality.sets import SETS as KNOWN_SETS
from benchmarks.quality.sets import open_tasks
from benchmarks.quality.tasks import Task, distinct, sample
from benchmarks.suggestions.report import DEFAULT, Answer, figures, print_tables
from completion.cancellation import CancelToken
from completion.decoding.step_costs import make_drafters
from completion.engine import Engine, product_settings
from completion.grammar.constraint import GrammarConstraint
from completion.host.process.address import normal_model
from completion.model.loading import LoadedModel, load_model
from completion.request import (
    Alternatives,
    CompletionEvent,
    CompletionRequest,
    GrammarMode,
    Sampling,
    Suggestion,
    WorkspaceUpdate,
)
from completion.workspace.context import WorkspaceContext

SETS = "single_line,multi_line,random_span,santacoder,safim,repo_context,release_replay,cursor_positions"
SAMPLES = "samples"
PLAIN_SAMPLES = "plain"
KINDS = (Alternatives.BRANCHES.value, Alternatives.SUPERPOSED.value, SAMPLES)
COUNTS = (3, 5)
GREEDY = "greedy"
ROWS = ("one", GREEDY, *(f"{kind}_{count}" for count in COUNTS for kind in KINDS), f"{PLAIN_SAMPLES}_3")


@dataclass(frozen=True, slots=True)
class Run:
    """One answer: its last event, and the times of the complete first suggestion and of the last event."""

    event: CompletionEvent
    first_ms: float
    total_ms: float


class Bench:
    """One model. Each run starts with what the drafters learned from earlier tasks."""

    def __init__(self, loaded: LoadedModel, sampling: Sampling, repeats: int) -> None:
        settings = product_settings()
        self._drafters = make_drafters(loaded, settings.max_nodes)
        self._engine = Engine(loaded, settings, self._drafters)
        self._sampling, self._repeats = sampling, repeats
        self._context_tokens = settings.budget.context_tokens

    def answer(self, task: Task) -> Iterator[dict[str, Any]]:
        """Yield the answer of each row to one task."""
        files = WorkspaceContext()
        files.update(WorkspaceUpdate("", task.files))
        request = replace(QUALITY_ROWS["whole"].request(task, files, self._context_tokens), document=task.id)
        started = time.perf_counter()
        self._engine.prepare(request, CancelToken())
        prompt_ms = 1e3 * (time.perf_counter() - started)
        learned = after_one = self._learned()
        self._timed(request)  # the first answer of all is not measured: it computes what the others reuse
        rows: dict[str, list[list[Run]]] = {row: [] for row in ROWS}
        for _ in range(self._repeats):  # rows take turns, so that all have the same noise of the machine
            for row in ROWS:
                self._learn(learned)
                rows[row].append([self._timed(asked) for asked in self._requests(row, request)])
                after_one = self._learned() if row == "one" else after_one
        self._learn(after_one)
        for row, repeats in rows.items():
            yield {"id": task.id, "row": row, "prompt_ms": round(prompt_ms, 2)} | _joined(repeats, task)

    def _learned(self) -> list[npt.NDArray[Any]]:
        """Return a copy of what the drafters learned; the questions name no workspace."""
        return [array.copy() for array in self._memory()]

    def _learn(self, learned: list[npt.NDArray[Any]]) -> None:
        """Go back to what the drafters had learned."""
        for array, values in zip(self._memory(), learned, strict=True):
            np.copyto(array, values)

    def _memory(self) -> list[npt.NDArray[Any]]:
        return [*self._drafters.calibration, *self._drafters.recycling("")]

    def _requests(self, row: str, request: CompletionRequest) -> list[CompletionRequest]:
        kind, _, count = row.partition("_")
        if kind in (SAMPLES, PLAIN_SAMPLES):
            asked = replace(request, drafting=kind == SAMPLES)
            return [replace(asked, sampling=replace(self._sampling, seed=seed)) for seed in range(int(count))]
        if not count:
            return [replace(request, search=kind != GREEDY)]
        return [replace(request, suggestions=int(count), alternatives=Alternatives(kind))]

    def _timed(self, request: CompletionRequest) -> Run:
        started = time.perf_counter()
        events = self._engine.complete(request, CancelToken())
        arrivals = [(1e3 * (time.perf_counter() - started), event) for event in events]
        total_ms, last = arrivals[-1]
        whole = [at for at, event in arrivals if event.suggestions[:1] and _same(event, last)]
        return Run(last, whole[0] if whole else total_ms, total_ms)


def _same(event: CompletionEvent, last: CompletionEvent) -> bool:
    """Return whether an event has the complete first suggestion of the last event."""
    return bool(last.suggestions) and event.suggestions[0].text == last.suggestions[0].text


def _joined(repeats: list[list[Run]], task: Task) -> dict[str, Any]:
    """Return the suggestions of the requests of a row, and their shortest time over all repeats."""
    suggestions = [suggestion for run in repeats[0] for suggestion in run.event.suggestions]
    return {
        "texts": [task.inserted(suggestion) for suggestion in suggestions],
        "parses": [_parses(suggestion, task) for suggestion in suggestions],
        "log_probabilities": [round(suggestion.log_probability, 4) for suggestion in suggestions],
        "first_ms": round(min(runs[0].first_ms for runs in repeats), 3),
        "total_ms": round(min(sum(run.total_ms for run in runs) for runs in repeats), 3),
    }


def _parses(suggestion: Suggestion, task: Task) -> bool:
    """Return whether the suggestion adds no syntax errors to the document."""
    grammar = GrammarConstraint(GRAMMARS, task.language, task.prefix, task.document_suffix, GrammarMode.STRICT, "")
    replaced = len(task.document_suffix[: suggestion.replace_after].encode())
    text = suggestion.text.encode()
    return grammar.longest_passing_cut(text, replaced) == len(text)


def main() -> None:
    """Make and score the answers, print tables, then one line of JSON."""
    options = _options()
    tasks = distinct(open_tasks(options.sets.split(","), options.data_dir))
    if not tasks:
        raise SystemExit("The data has no task. Give other --sets or another --data-dir.")
    tasks = sample(tasks, options.limit) if options.limit else tasks
    model = normal_model(options.model)
    made = read_answers(options.out, model)
    missing = [task for task in tasks if not all((task.id, row) in made for row in ROWS)]
    if missing:
        sampling = Sampling(options.temperature, options.top_p)
        bench = Bench(load_model(model, threads=options.threads), sampling, options.repeats)
        with (options.out or Path(os.devnull)).open("a", encoding="utf-8") as out:
            for number, task in enumerate(missing):
                for answer in bench.answer(task):
                    line = answer | {"model": model}
                    print(json.dumps(line), file=out, flush=True)
                    made[task.id, line["row"]] = line
                if sys.stderr.isatty():
                    print(f"\r{number + 1}/{len(missing)}", end="", file=sys.stderr)
    answers = _score(made, tasks, options.jobs)
    print_tables(answers)
    print(json.dumps({"records": len(tasks)} | figures(answers, options.alternatives)))


def _score(made: dict[tuple[str, str], dict[str, Any]], tasks: list[Task], jobs: int) -> list[Answer]:
    """Score each suggestion. Programs run in parallel."""
    texts = {(task, text) for task in tasks for row in ROWS for text in made[task.id, row]["texts"] or [""]}

    def one(pair: tuple[Task, str]) -> Score:
        task, text = pair
        return score(text, task.reference, task.program(text))

    with ThreadPoolExecutor(jobs) as pool:
        ordered = list(texts)
        scores = dict(zip(ordered, pool.map(one, ordered), strict=True))
    return [
        Answer(
            task=task,
            row=row,
            texts=tuple(line["texts"]),
            scores=tuple(scores[task, text] for text in line["texts"] or [""]),
            parses=tuple(line["parses"]),
            log_probabilities=tuple(line["log_probabilities"]),
            first_ms=line["first_ms"],
            total_ms=line["total_ms"],
            prompt_ms=line["prompt_ms"],
        )
        for task in tasks
        for row in ROWS
        for line in (made[task.id, row],)
    ]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.suggestions", description=__doc__)
    parser.add_argument("--sets", default=SETS, help="data sets, comma-separated: " + ", ".join(KNOWN_SETS))
    parser.add_argument("--data-dir", help="folder of the data")
    parser.add_argument(
        "--limit",
        type=int,
        default=2,
        help="maximum number of tasks of each data set and language; 0 for all (default: %(default)s)",
    )
    parser.add_argument(
        "--repeats", type=int, default=1, help="number of runs of each row; the fastest counts (default: %(default)s)"
    )
    parser.add_argument(
        "--temperature", type=float, default=0.8, help="temperature of the nucleus samples (default: %(default)s)"
    )
    parser.add_argument("--top-p", type=float, default=0.95, help="top-p of the nucleus samples (default: %(default)s)")
    parser.add_argument(
        "--out", type=Path, help="file of answers, one JSON object a line; an existing file is continued"
    )
    parser.add_argument(
        "--alternatives",
        choices=[kind.value for kind in Alternatives],
        default=DEFAULT,
        help="kind of the figures that name none (default: %(default)s)",
    )
    parser.add_argument("--model", default="default", help="model that is measured (default: %(default)s)")
    parser.add_argument("--threads", type=int, help="threads of the model; the engine chooses if it is not given")
    parser.add_argument(
        "--jobs", type=int, default=2, help="number of programs that run at once (default: %(default)s)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
