"""`python -m benchmarks.suggestions`: several suggestions for one question, what they cost and what they are worth.

Each question of the open data is answered with one suggestion, with k exact branches, with k superposed drafts, and
with k nucleus samples that are k requests. All rows take the same path (grammar, filters, drafting) and start from the
same learned drafters; `plain` are the samples without drafting, a token a pass, as the published figure has them. Each
time is taken twice: from question to last suggestion with a prompt that is computed first (`time_ratio`), and with one
that is cached, as while somebody types (`time_ratio_cached_prompt`). Samples are compared with a cached prompt: plain
(`speedup_over_samples`) and drafted for (`speedup_over_drafted_samples`). Answers are written as they are made
(`--out`), and are not made again when the same file is named once more.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.quality.rows import ROWS as QUALITY_ROWS
from benchmarks.quality.scoring import Score, score
from benchmarks.quality.tasks import SETS as KNOWN_SETS
from benchmarks.quality.tasks import Task, open_tasks, sample
from benchmarks.suggestions.report import Answer, figures, print_tables
from completion.cancellation import CancelToken
from completion.decoding.drafting_setup import make_drafters
from completion.engine import Engine, product_settings
from completion.grammar.constraint import GrammarConstraint
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
ROWS = ("one", *(f"{kind}_{count}" for count in COUNTS for kind in KINDS), f"{PLAIN_SAMPLES}_3")


@dataclass(frozen=True, slots=True)
class Run:
    """One answer as it came: its suggestions, and when the first of them and the last event were there."""

    event: CompletionEvent
    first_ms: float
    total_ms: float


class Bench:
    """One model; every run starts with what the drafters had learned from the questions before."""

    def __init__(self, loaded: LoadedModel, sampling: Sampling, repeats: int) -> None:
        settings = product_settings()
        self._drafters = make_drafters(loaded, settings.max_nodes)
        self._engine = Engine(loaded, settings, self._drafters)
        self._sampling, self._repeats = sampling, repeats
        self._context_tokens = settings.budget.context_tokens

    def answer(self, task: Task) -> Iterator[dict[str, Any]]:
        """Every row's answer to one task."""
        files = WorkspaceContext()
        files.update(WorkspaceUpdate("", task.files))
        request = replace(QUALITY_ROWS["whole"].request(task, files, self._context_tokens), document=task.id)
        started = time.perf_counter()
        self._engine.prepare(request, CancelToken())
        prompt_ms = 1e3 * (time.perf_counter() - started)
        learned = self._drafters.learned
        after_one = learned
        rows: dict[str, list[list[Run]]] = {row: [] for row in ROWS}
        for _ in range(self._repeats):  # rows take turns: what else the machine does meets them all
            for row in ROWS:
                self._drafters.learned = copy.deepcopy(learned)
                rows[row].append([self._timed(asked) for asked in self._requests(row, request)])
                after_one = self._drafters.learned if row == "one" else after_one
        self._drafters.learned = after_one
        for row, repeats in rows.items():
            yield {"id": task.id, "row": row, "prompt_ms": round(prompt_ms, 2)} | _joined(repeats, task)

    def _requests(self, row: str, request: CompletionRequest) -> list[CompletionRequest]:
        kind, _, count = row.partition("_")
        if kind in (SAMPLES, PLAIN_SAMPLES):
            asked = replace(request, drafting=kind == SAMPLES)
            return [replace(asked, sampling=replace(self._sampling, seed=seed)) for seed in range(int(count))]
        if not count:
            return [request]
        return [replace(request, suggestions=int(count), alternatives=Alternatives(kind))]

    def _timed(self, request: CompletionRequest) -> Run:
        started = time.perf_counter()
        events = self._engine.complete(request, CancelToken())
        arrivals = [(1e3 * (time.perf_counter() - started), event) for event in events]
        total_ms, last = arrivals[-1]
        whole = [at for at, event in arrivals if event.suggestions[:1] and _same(event, last)]
        return Run(last, whole[0] if whole else total_ms, total_ms)


def _same(event: CompletionEvent, last: CompletionEvent) -> bool:
    """Whether an event has the whole first suggestion of the last one."""
    return bool(last.suggestions) and event.suggestions[0].text == last.suggestions[0].text


def _joined(repeats: list[list[Run]], task: Task) -> dict[str, Any]:
    """The suggestions of a row's requests, and the least time that they took."""
    suggestions = [suggestion for run in repeats[0] for suggestion in run.event.suggestions]
    return {
        "texts": [_completion(suggestion, task) for suggestion in suggestions],
        "parses": [_parses(suggestion, task) for suggestion in suggestions],
        "log_probabilities": [round(suggestion.log_probability, 4) for suggestion in suggestions],
        "first_ms": round(min(runs[0].first_ms for runs in repeats), 3),
        "total_ms": round(min(sum(run.total_ms for run in runs) for runs in repeats), 3),
    }


def _completion(suggestion: Suggestion, task: Task) -> str:
    """The suggested text without what its range replaces: what stands between prefix and suffix in the end."""
    return suggestion.text.removesuffix(task.document_suffix[: suggestion.replace_after])


def _parses(suggestion: Suggestion, task: Task) -> bool:
    """Whether the document has no more syntax errors with the suggestion than before."""
    grammar = GrammarConstraint.open(task.language, task.prefix, task.document_suffix, GrammarMode.STRICT, "")
    replaced = len(task.document_suffix[: suggestion.replace_after].encode())
    text = suggestion.text.encode()
    return grammar.longest_passing_cut(text, replaced) == len(text)


def main() -> None:
    """Answer, score, print a table and one JSON line."""
    options = _options()
    tasks = list(open_tasks(options.sets.split(","), options.data_dir))
    tasks = sample(tasks, options.limit) if options.limit else tasks
    made = _read(options.out)
    missing = [task for task in tasks if not all((task.id, row) in made for row in ROWS)]
    if missing:
        sampling = Sampling(options.temperature, options.top_p)
        bench = Bench(load_model(options.model, threads=options.threads), sampling, options.repeats)
        with (options.out or Path(os.devnull)).open("a", encoding="utf-8") as out:
            for number, task in enumerate(missing):
                for line in bench.answer(task):
                    print(json.dumps(line), file=out, flush=True)
                    made[task.id, line["row"]] = line
                if sys.stderr.isatty():
                    print(f"\r{number + 1}/{len(missing)}", end="", file=sys.stderr)
    answers = _score(made, tasks, options.jobs)
    print_tables(answers)
    print(json.dumps({"records": len(tasks)} | figures(answers)))


def _score(made: dict[tuple[str, str], dict[str, Any]], tasks: list[Task], jobs: int) -> list[Answer]:
    """Score every suggestion, programs in parallel."""
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


def _read(path: Path | None) -> dict[tuple[str, str], dict[str, Any]]:
    if path is None or not path.is_file():
        return {}
    lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {(line["id"], line["row"]): line for line in lines}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.suggestions", description=__doc__)
    parser.add_argument("--sets", default=SETS, help="which of the open data: " + ", ".join(KNOWN_SETS))
    parser.add_argument("--data-dir", help="folder of the open data")
    parser.add_argument("--limit", type=int, default=2, help="at most so many tasks of a data set and language; 0: all")
    parser.add_argument("--repeats", type=int, default=1, help="runs of each row, of which the fastest counts")
    parser.add_argument("--temperature", type=float, default=0.8, help="of the nucleus samples")
    parser.add_argument("--top-p", type=float, default=0.95, help="of the nucleus samples")
    parser.add_argument("--out", type=Path, help="answers, one JSON object a line; continued where it exists")
    parser.add_argument("--model", default="default")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--jobs", type=int, default=2, help="programs that are tested at once")
    return parser.parse_args()


if __name__ == "__main__":
    main()
