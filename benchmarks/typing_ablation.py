"""`python -m benchmarks.typing_ablation`: what each part of draftline is worth during typing.

The sessions of `benchmarks.typing` are typed without pauses. Every few keys, engines that share one model but lack one
part each get the same request in turn. A session never depends on what was suggested, so the rows differ by the missing
part only. Each row has its own caches and drafters. Without PIE, no prompt is shortened after a jump either; a person
who looks around there gives the engine the time for the whole one. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.data import read_records
from benchmarks.figures import percentile, ratio, rounded
from benchmarks.grammar.completions import adds_errors
from benchmarks.typing.scripts import Script, choose, release_scripts
from completion.cancellation import CancelToken
from completion.engine import Engine, product_settings
from completion.model.loading import LoadedModel, load_model
from completion.request import CacheMode, CompletionEvent, CompletionRequest, GrammarMode

ALL = "all parts"
ROWS: dict[str, dict[str, Any]] = {
    ALL: {},
    "no drafts": {"drafting": False},
    "no PIE": {"cache": CacheMode.EXACT},
    "no grammar": {"grammar": GrammarMode.OFF},
    "no search": {"search": False},
    "k = 1": {"suggestions": 1},
}
MAX_TOKENS, SUGGESTIONS = 128, 3
"""Defaults of the language server."""


@dataclass(slots=True)
class Tally:
    """Results of the requests of one row.

    Attributes:
        first_ms: Times to the first text, of requests with a suggestion.
        whole_ms: Times to the complete first suggestion.
        cpu_s: Processor seconds of all requests, alternatives included.
        offered: Requests with a suggestion.
        right: Requests whose first suggestion completes the line of the cursor exactly.
        right_of_all: Requests of which any suggestion does so.
        broken: Requests whose first suggestion adds syntax errors to the file.
    """

    first_ms: list[float] = field(default_factory=list)
    whole_ms: list[float] = field(default_factory=list)
    cpu_s: float = 0.0
    offered: int = 0
    right: int = 0
    right_of_all: int = 0
    broken: int = 0


def questions(script: Script, every: int, most: int) -> Iterator[tuple[CompletionRequest, str]]:
    """Yield a request at every `every`-th key of a session, at most `most`, with the missing part of the line."""
    text, asked = script.text, 0
    for passage in script.passages:
        before, after = text[: passage.offset], text[passage.offset + passage.deleted :]
        for typed in range(0, len(passage.typed), every):
            lacking = passage.typed[typed:].partition("\n")[0]
            if lacking.strip() and asked < most:
                asked += 1
                request = CompletionRequest(
                    prefix=before + passage.typed[:typed],
                    suffix=after,
                    language=script.language,
                    path=script.path,
                    document=script.id,
                    max_tokens=MAX_TOKENS,
                    suggestions=SUGGESTIONS,
                )
                yield request, lacking
        text = before + passage.typed + after


def ask(engine: Engine, request: CompletionRequest, lacking: str, tally: Tally) -> None:
    """Send one request and add its result to the tally."""
    started, cpu = time.perf_counter(), time.process_time()
    first = whole = None
    last = CompletionEvent(())
    for last in engine.complete(request, CancelToken()):
        now = 1e3 * (time.perf_counter() - started)
        first = now if first is None and last.suggestions else first
        whole = now if whole is None and last.suggestions and (last.whole or last.done) else whole
    tally.cpu_s += time.process_time() - cpu
    if not last.suggestions or first is None or whole is None:
        return
    tally.offered += 1
    tally.first_ms.append(first)
    tally.whole_ms.append(whole)
    lines = [suggestion.text.partition("\n")[0].rstrip() for suggestion in last.suggestions]
    tally.right += lines[0] == lacking.rstrip()
    tally.right_of_all += lacking.rstrip() in lines
    tally.broken += adds_errors(request, last.suggestions[0])


def run(loaded: LoadedModel, scripts: Sequence[Script], every: int, most: int) -> dict[str, Tally]:
    """Type all sessions. The rows take turns in going first. The cache of a file is warm before its first request."""
    engines = {row: Engine(loaded, product_settings()) for row in ROWS}
    tallies = {row: Tally() for row in ROWS}
    for number, script in enumerate(scripts):
        for turn, (request, lacking) in enumerate(questions(script, every, most)):
            rows = [*ROWS][turn % len(ROWS) :] + [*ROWS][: turn % len(ROWS)]
            for row in rows:
                asked = replace(request, **ROWS[row])
                if turn == 0:
                    engines[row].prepare(asked, CancelToken())
                ask(engines[row], asked, lacking, tallies[row])
        if sys.stderr.isatty():
            print(f"\r{number + 1}/{len(scripts)}", end="", file=sys.stderr)
    return tallies


def figures(tallies: dict[str, Tally]) -> dict[str, float | None]:
    """Return the figures by name, None where there is no data.

    A ratio is the value without the part over that with all parts.
    """
    whole, without_drafts, without_pie = tallies[ALL], tallies["no drafts"], tallies["no PIE"]
    without_grammar, without_search, one = tallies["no grammar"], tallies["no search"], tallies["k = 1"]
    return {
        "offered": whole.offered,
        "right": whole.right,
        "drafts_whole_p50_ratio": _ratio(_p50(without_drafts.whole_ms), _p50(whole.whole_ms)),
        "drafts_cpu_ratio": _ratio(without_drafts.cpu_s, whole.cpu_s),
        "pie_first_p95_ratio": _ratio(_p95(without_pie.first_ms), _p95(whole.first_ms)),
        "pie_cpu_ratio": _ratio(without_pie.cpu_s, whole.cpu_s),
        "pie_right_lost": without_pie.right - whole.right,
        "grammar_broken_with": whole.broken,
        "grammar_broken_without": without_grammar.broken,
        "grammar_right_lost": without_grammar.right - whole.right,
        "grammar_cpu_ratio": _ratio(without_grammar.cpu_s, whole.cpu_s),
        "search_right_won": whole.right - without_search.right,
        "search_first_p50_ratio": _ratio(_p50(without_search.first_ms), _p50(whole.first_ms)),
        "search_cpu_ratio": _ratio(without_search.cpu_s, whole.cpu_s),
        "alternatives_right_won": whole.right_of_all - whole.right,
        "alternatives_cpu_ratio": _ratio(one.cpu_s, whole.cpu_s),
    }


def print_table(tallies: dict[str, Tally]) -> None:
    """Print one row for each missing part."""
    table = Table()
    columns = (
        "row",
        "offered",
        "first text p50",
        "p95",
        "whole p50",
        "right",
        "right of all",
        "breaks the file",
        "cpu s",
    )
    for column in columns:
        table.add_column(column, justify="left" if column == "row" else "right")
    for row, tally in tallies.items():
        times = (_p50(tally.first_ms), _p95(tally.first_ms), _p50(tally.whole_ms))
        counts = (tally.right, tally.right_of_all, tally.broken)
        cells = [
            *("–" if time_ms is None else f"{time_ms:.0f} ms" for time_ms in times),
            *map(str, counts),
            f"{tally.cpu_s:.1f}",
        ]
        table.add_row(row, str(tally.offered), *cells)
    Console(width=120).print(table)


def _p50(values: Sequence[float]) -> float | None:
    return percentile(values, 0.5)


def _p95(values: Sequence[float]) -> float | None:
    return percentile(values, 0.95)


def _ratio(without: float | None, whole: float | None) -> float | None:
    return rounded(ratio(without, whole), 3)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.typing_ablation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data-dir", help="folder of the data")
    parser.add_argument("--sessions", type=int, default=24, help="number of files to type in (default: %(default)s)")
    parser.add_argument(
        "--every", type=int, default=7, help="number of keys between two requests (default: %(default)s)"
    )
    parser.add_argument(
        "--questions", type=int, default=8, help="maximum number of requests of a session (default: %(default)s)"
    )
    parser.add_argument(
        "--characters", type=int, default=100, help="characters typed in a session (default: %(default)s)"
    )
    parser.add_argument("--threads", type=int, default=2, help="threads of the model (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of what is random (default: %(default)s)")
    options = parser.parse_args()
    records = read_records("open_release_replay.jsonl.gz", options.data_dir)
    scripts = choose(release_scripts(records, options.characters), [], options.sessions, options.seed)
    tallies = run(load_model("default", threads=options.threads), scripts, options.every, options.questions)
    print_table(tallies)
    print(json.dumps(figures(tallies)))


if __name__ == "__main__":
    main()
