"""`python -m benchmarks.quality`: quality of suggestions, compared with the bare model and the prompt of /infill.

`--out FILE` writes each prediction at once. A later run of the same model with the same file makes only the missing
predictions.
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

from benchmarks.data import read_answers
from benchmarks.grammar.completions import adds_errors
from benchmarks.quality.report import Prediction, by_set, keys, print_tables
from benchmarks.quality.rows import LAYOUT_ROWS, ROWS, rows_for
from benchmarks.quality.scoring import score
from benchmarks.quality.sets import FILES, SETS, half_of, open_tasks
from benchmarks.quality.tasks import Task, distinct, file_tasks, sample
from completion.backend import BACKENDS, Backend
from completion.cancellation import CancelToken
from completion.engine import Engine, product_settings
from completion.host.process.address import normal_model
from completion.model.loading import load_model
from completion.request import CompletionRequest, Mode, Suggestion, WorkspaceUpdate
from completion.syntax.languages import parsed_row
from completion.workspace.context import WorkspaceContext


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the command line."""

    tasks: list[Task]
    rows: tuple[str, ...]
    model: str
    backend: Backend
    context_tokens: int
    threads: int | None
    out: Path | None
    jobs: int


def main() -> None:
    """Make and score the predictions, print tables, then one line of JSON."""
    options = _options()
    made = read_answers(options.out, options.model)
    missing = [
        (row, task)
        for task in options.tasks
        for row in rows_for(task.dataset, options.rows)
        if (task.id, row) not in made and (task.history or row != "whole_no_history")
    ]
    for backend in dict.fromkeys(ROWS[row].backend or options.backend for row, _ in missing):
        part = [(row, task) for row, task in missing if (ROWS[row].backend or options.backend) == backend]
        for prediction in _answer(part, backend, options):
            made[prediction["id"], prediction["row"]] = prediction
    predictions = _score(made, options)
    print_tables(predictions)
    print(json.dumps({"records": len(options.tasks)} | keys(predictions) | {"sets": by_set(predictions)}))


def _answer(work: list[tuple[str, Task]], backend: Backend, options: Options) -> Iterator[dict[str, Any]]:
    """Complete each task in each row on one model, and write a line of the output file for each."""
    engine = Engine(load_model(options.model, backend=backend, threads=options.threads), product_settings())
    with (options.out or Path(os.devnull)).open("a", encoding="utf-8") as out:
        for number, (row, task) in enumerate(work):
            files = WorkspaceContext()
            files.update(WorkspaceUpdate("", task.files))
            request = ROWS[row].request(task, files, options.context_tokens)
            started = time.perf_counter()
            *_, last = engine.complete(request, CancelToken())
            prediction = {
                "id": task.id,
                "row": row,
                "model": options.model,
                "completion": task.inserted(last.suggestions[0]) if last.suggestions else "",
                "stop": last.stop_reason,
                "dropped": last.dropped,
                "log_probabilities": [
                    round(value, 4) for s in last.suggestions[:1] for value in s.token_log_probabilities
                ],
                "seconds": round(time.perf_counter() - started, 3),
            }
            print(json.dumps(prediction), file=out, flush=True)
            if sys.stderr.isatty():
                print(f"\r{backend} {number + 1}/{len(work)} {row:24}", end="", file=sys.stderr)
            yield prediction
    engine.close()


def _score(made: dict[tuple[str, str], dict[str, Any]], options: Options) -> list[Prediction]:
    """Score each prediction of the chosen rows. Programs run in parallel."""
    wanted = [
        (task, made[task.id, row])
        for task in options.tasks
        for row in rows_for(task.dataset, options.rows)
        if (task.id, row) in made and (task.history or row != "whole_no_history")
    ]

    def one(pair: tuple[Task, dict[str, Any]]) -> Prediction:
        task, prediction = pair
        text = prediction["completion"]
        request = CompletionRequest(task.prefix, task.document_suffix, task.language, task.path)
        result = score(text, task.reference, task.program(text))
        if parsed_row(task.language) is not None and not adds_errors(request, Suggestion(task.reference)):
            result = replace(result, added_errors=float(adds_errors(request, Suggestion(text))))
        return Prediction(task.id, task.dataset, task.language, prediction["row"], result, prediction["seconds"])

    with ThreadPoolExecutor(options.jobs) as pool:
        return list(pool.map(one, wanted))


def _options() -> Options:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    parser.add_argument(
        "--data", type=Path, action="append", help="file of records (.jsonl, .jsonl.gz), may be repeated"
    )
    parser.add_argument("--sets", default=",".join(FILES), help="data sets, comma-separated: " + ", ".join(SETS))
    parser.add_argument("--data-dir", help="folder of the data")
    parser.add_argument(
        "--mode", type=Mode, default=Mode.AUTO, help="line, block or auto, for --data (default: %(default)s)"
    )
    parser.add_argument(
        "--limit", type=int, default=0, help="maximum number of tasks of each data set and language; 0 for all"
    )
    parser.add_argument("--half", type=int, choices=(0, 1), help="only tasks of one half of the packages")
    parser.add_argument("--rows", default="", help="rows, comma-separated: " + ", ".join(ROWS) + "; or layouts")
    parser.add_argument(
        "--out", type=Path, help="file of predictions, one JSON object a line; an existing file is continued"
    )
    parser.add_argument("--model", default="default", help="model that is measured (default: %(default)s)")
    parser.add_argument(
        "--backend", default="auto", choices=BACKENDS, help="implementation that runs the model (default: %(default)s)"
    )
    parser.add_argument(
        "--context-tokens",
        type=int,
        default=product_settings().budget.context_tokens,
        help="maximum length of a prompt, in tokens (default: %(default)s)",
    )
    parser.add_argument("--threads", type=int, help="threads of the model; the engine chooses if it is not given")
    parser.add_argument(
        "--jobs", type=int, default=2, help="number of programs that run at once (default: %(default)s)"
    )
    given = parser.parse_args()
    rows = LAYOUT_ROWS if given.rows == "layouts" else tuple(filter(None, given.rows.split(",")))
    unknown = set(rows) - set(ROWS)
    if unknown:
        parser.error(f"unknown rows: {', '.join(sorted(unknown))}; known: {', '.join(ROWS)}")
    return Options(
        tasks=_tasks(given),
        rows=rows,
        model=normal_model(given.model),
        backend=given.backend,
        context_tokens=given.context_tokens,
        threads=given.threads,
        out=given.out,
        jobs=given.jobs,
    )


def _tasks(given: argparse.Namespace) -> list[Task]:
    """Return the tasks that the command line chooses.

    Raises:
        SystemExit: There are none.
    """
    if given.data:
        tasks = distinct(task for path in given.data for task in file_tasks(path, given.mode))
    else:
        tasks = distinct(open_tasks(given.sets.split(","), given.data_dir))
    if given.half is not None:
        tasks = [task for task in tasks if half_of(task.id) == given.half]
    if not tasks:
        raise SystemExit("The data has no task. Give other --data, --sets or --half.")
    return sample(tasks, given.limit) if given.limit else tasks


if __name__ == "__main__":
    main()
