"""`python -m benchmarks.drafting`: plain decoding against each drafter alone, all but each, and all together.

All rows share the model and the prompts. They decode each request one after the other on one session, so that they
have the same cached prompt and the same noise of the machine. Their order is random, because the first one after a
prefill is slower. The workspace is new for each request, so that no row guesses from the text of the case's greedy
request when the same prompt is sampled. The completions are compared. Where a drafted completion differs from the plain
one, the logits show how near a tie the choice was.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from random import Random

from benchmarks.drafting.difference import gap_at_difference
from benchmarks.drafting.records import Case, read_cases
from benchmarks.drafting.transformers_lookup import TheirPromptLookup
from benchmarks.figures import percentile, ratio
from completion.backend import BACKENDS
from completion.cancellation import CancelToken
from completion.decoding.step_costs import measure_costs
from completion.engine import Engine, product_settings
from completion.model.loading import LoadedModel, load_model
from completion.request import CompletionRequest, Statistics
from drafting.calibration import NAMES, default_calibration
from drafting.session import Drafters, DraftingSession
from drafting.sources.token_recycling import RecyclingArrays, common_recycling

PLAIN, COLD, WARM, COMBINED = "plain", "recycling, cold", "recycling, warm", "combined"
LOOKUPS = {name: f"{name.replace('_', ' ')} only" for name in NAMES if name != "token_recycling"}
WITHOUT = {name: f"without {name.replace('_', ' ')}" for name in NAMES}
ROWS = {
    **{row: (name,) for name, row in LOOKUPS.items()},
    COLD: ("token_recycling",),
    WARM: ("token_recycling",),
    **{row: tuple(other for other in NAMES if other != name) for name, row in WITHOUT.items()},
    COMBINED: NAMES,
}
MAX_NODES = 16
"""Maximum number of nodes in a draft tree, as in the product."""


class SwitchedDrafters(Drafters):
    """Drafters of all rows for one engine and its cached prompts; one row is active at a time."""

    def __init__(self, loaded: LoadedModel, max_nodes: int) -> None:
        """Measure the step costs once. Each row starts with its own empty memory."""
        costs = measure_costs(loaded.model, max_nodes)
        special = sorted(loaded.tokenizer.special.values())
        ends, size = loaded.tokenizer.tokens_with_byte(b"\n"), loaded.tokenizer.vocabulary_size
        frequent = common_recycling(loaded.tokenizer.digest)  # read once: the cold row starts from it each time

        def common() -> RecyclingArrays:
            return deepcopy(frequent)

        super().__init__(default_calibration(), costs, size, NAMES, special, ends, common)

        def fresh(row: str) -> Drafters:
            made = Drafters(default_calibration(), costs, size, ROWS[row], special, ends, common)
            made._workspaces = self._workspaces  # noqa: SLF001 - one index for all rows
            return made

        self._fresh = fresh
        self.rows = {row: fresh(row) for row in ROWS}
        self.current = COMBINED
        self.warm_up()

    def session(
        self, prompt: Sequence[int], workspace: str = "", tail: Sequence[int] = (), *, single_line: bool = False
    ) -> DraftingSession:
        """Return a session of the active row. The cold row starts each session without learned state."""
        if self.current == COLD:
            self.rows[COLD] = self._fresh(COLD)
        key = "" if self.current == WARM else workspace  # which keeps what it learned in all of them
        return self.rows[self.current].session(prompt, key, tail, single_line=single_line)

    def close_workspace(self, key: str) -> None:
        """Drop the index of a workspace, and what the rows learned there."""
        super().close_workspace(key)
        for row in self.rows.values():
            row.close_workspace(key)


@dataclass(slots=True)
class Result:
    """Completion of one case by one row."""

    case: Case
    row: str
    sampled: bool
    text: str
    statistics: Statistics


class Bench:
    """An engine with switchable drafters, and its measurements."""

    def __init__(self, loaded: LoadedModel, max_nodes: int = MAX_NODES) -> None:
        """Make one engine for all rows."""
        self.loaded = loaded
        self.results: list[Result] = []
        self.gaps: list[float] = []
        self.drafters = SwitchedDrafters(loaded, max_nodes)
        settings = replace(product_settings(), max_nodes=max_nodes)  # `--max-nodes` is a parameter of this benchmark
        self.engine = Engine(loaded, settings, self.drafters)

    def complete(self, case: Case, row: str, request: CompletionRequest) -> Result:
        """Complete one case by one row."""
        self.drafters.current = row
        asked = replace(request, drafting=row != PLAIN)
        *_, last = self.engine.complete(asked, CancelToken())
        text = last.suggestions[0].text if last.suggestions else ""
        assert last.statistics is not None
        return Result(case, row, request.sampling.temperature > 0, text, last.statistics)

    def open_workspace(self, case: Case) -> None:
        """Index the files of a case."""
        for _ in self.engine.update_workspace(case.workspace, CancelToken()):
            pass

    def warm_up(self, cases: Iterable[Case]) -> None:
        """Train the learning rows on cases that are not measured."""
        for case in cases:
            self.open_workspace(case)
            self.complete(case, COMBINED, case.request)
            self.complete(case, WARM, case.request)
            self.drafters.close_workspace(case.request.workspace)

    def measure(self, case: Case, rows: Sequence[str], *, sampled: bool, seed: int) -> None:
        """Complete one case by plain decoding and by `rows` in a new workspace, and compare the completions."""
        request = case.sampled(seed) if sampled else case.request
        self.open_workspace(case)
        self.engine.prepare(request, CancelToken())
        order = Random(seed).sample([PLAIN, *rows], 1 + len(rows))
        found = {row: self.complete(case, row, request) for row in order}
        self.results += [found[row] for row in (PLAIN, *rows)]
        self.drafters.current = COMBINED  # whichever row was the last
        if found[COMBINED].text != found[PLAIN].text:
            self.gaps.append(gap_at_difference(self.loaded.model, self.engine, self.drafters, request))
        self.drafters.close_workspace(request.workspace)

    def pairs(self, row: str, choose: Callable[[Result], bool] = lambda _result: True) -> list[tuple[Result, Result]]:
        """Return pairs of the plain result and the result of `row` for the same request."""
        plain: Result | None = None
        found = []
        for result in self.results:
            if result.row == PLAIN:
                plain = result
            elif result.row == row and plain is not None and choose(result):
                found.append((plain, result))
        return found


def speedup(pairs: Sequence[tuple[Result, Result]]) -> float | None:
    """Return the total decode time without drafts over that with drafts, None if nothing was decoded."""
    plain = sum(before.statistics.decode_ms for before, _ in pairs)
    return ratio(plain, sum(after.statistics.decode_ms for _, after in pairs)) if plain else None


def median_speedup(pairs: Sequence[tuple[Result, Result]]) -> float | None:
    """Return the median of the speed-ups of single cases, which other work on the machine hardly disturbs."""
    return percentile([found for pair in pairs if (found := speedup([pair])) is not None], 0.5)


def mean_accepted(pairs: Sequence[tuple[Result, Result]]) -> float:
    """Return completion tokens per step, including the token of the model; tokens after the end do not count."""
    tokens = sum(before.statistics.generated_tokens for before, _ in pairs)
    return tokens / max(sum(after.statistics.steps for _, after in pairs), 1)


def identical(pairs: Sequence[tuple[Result, Result]]) -> float:
    """Return the share of completions that drafting did not change."""
    return sum(before.text == after.text for before, after in pairs) / max(len(pairs), 1)


def print_table(bench: Bench) -> None:
    """Print every row over all cases, then the combined row by suite, language and kind of sampling."""
    print(f"{'':36}{'n':>5}{'speed-up':>10}{'tokens/step':>13}{'identical':>11}")
    for row in ROWS:
        _print_row(row, bench.pairs(row))
    groups: dict[str, list[tuple[Result, Result]]] = defaultdict(list)
    for pair in bench.pairs(COMBINED):
        case = pair[1].case
        way = "sampled" if pair[1].sampled else "greedy"
        for name in (f"combined, {way}", f"combined, {case.suite}", f"combined, {case.suite}, {case.language}"):
            groups[name].append(pair)
    for name in sorted(groups):
        _print_row(name, groups[name])


def _print_row(name: str, pairs: Sequence[tuple[Result, Result]]) -> None:
    if pairs:
        figures = f"{speedup(pairs) or 0.0:10.2f}{mean_accepted(pairs):13.2f}{identical(pairs):11.3f}"
        print(f"{name:36}{len(pairs):5}{figures}")


def summary(bench: Bench) -> dict[str, object]:
    """Return the figures of the last line by name."""
    combined = bench.pairs(COMBINED)
    suites = sorted({after.case.suite for _, after in combined})
    by_suite = {suite: bench.pairs(COMBINED, lambda r, s=suite: r.case.suite == s) for suite in suites}  # type: ignore[misc]
    single = {row: bench.pairs(row) for row in ROWS}
    shared = {id(before) for before, _ in single[COLD]}
    same = [pair for pair in combined if id(pair[0]) in shared]
    per_step = [after.statistics.drafting_ms / max(after.statistics.steps, 1) for _, after in combined]
    by_row = {row: speedup(pairs) for row, pairs in single.items() if row != COMBINED}
    together, tokens = speedup(same), mean_accepted(same)
    return {
        "completions": len(combined),
        "speedup": speedup(combined),
        "median_speedup": median_speedup(combined),
        "speedup_by_suite": {suite: speedup(pairs) for suite, pairs in by_suite.items()},
        "mean_accepted_tokens": {suite: mean_accepted(pairs) for suite, pairs in by_suite.items()},
        "worst_suite_slowdown": max(
            (1 / found for pairs in by_suite.values() if (found := speedup(pairs))), default=None
        ),
        "identical_share": identical([pair for pairs in single.values() for pair in pairs]),
        "largest_gap_at_difference": max(bench.gaps, default=0.0),
        "drafting_ms_per_step": percentile(per_step, 0.5),
        "speedup_same_cases": {COMBINED: together} | by_row,
        "rows": {
            row: {"speedup": speedup(pairs), "tokens_per_step": mean_accepted(pairs)}
            for row, pairs in (single | {COMBINED: same}).items()
        },
        "adds": {
            name: {
                "speedup": (together or 0.0) / (by_row[row] or 1.0),
                "tokens_per_step": tokens - mean_accepted(single[row]),
            }
            for name, row in WITHOUT.items()
        },
        "combined_beats_each": all((together or 0.0) > (by_row[row] or 0.0) for row in (*LOOKUPS.values(), COLD, WARM)),
    }


def run(bench: Bench, cases: Sequence[Case], single_every: int) -> None:
    """Measure all cases, each greedily and sampled. Every `single_every`-th case also runs the single drafters."""
    for number, case in enumerate(cases):
        rows = list(ROWS) if number % single_every == 0 else [COMBINED]
        bench.measure(case, rows, sampled=False, seed=number)
        bench.measure(case, [COMBINED], sampled=True, seed=number)


def main() -> None:
    """Print a table, then one line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drafting", description=__doc__)
    parser.add_argument(
        "--records",
        type=int,
        default=180,
        help="number of cases, each completed greedily and sampled (default: %(default)s)",
    )
    parser.add_argument("--data-dir", help="folder of the data")
    parser.add_argument("--model", default="default", help="model that is measured (default: %(default)s)")
    parser.add_argument(
        "--backend", default="auto", choices=BACKENDS, help="implementation that runs the model (default: %(default)s)"
    )
    parser.add_argument("--threads", type=int, help="threads of the model; the engine chooses if it is not given")
    parser.add_argument("--max-nodes", type=int, default=MAX_NODES, help="maximum number of nodes in a draft tree")
    parser.add_argument(
        "--single-every", type=int, default=3, help="run the single drafters on every N-th case (default: %(default)s)"
    )
    parser.add_argument(
        "--warm-up", type=int, default=24, help="number of cases to learn from, not measured (default: %(default)s)"
    )
    parser.add_argument(
        "--comparisons", type=int, default=10, help="number of completions by transformers' prompt lookup"
    )
    arguments = parser.parse_args()
    started = time.perf_counter()
    loaded = load_model(arguments.model, backend=arguments.backend, threads=arguments.threads)
    cases = read_cases(arguments.records + arguments.warm_up, arguments.data_dir)
    if not cases[: arguments.records]:
        raise SystemExit("There is nothing to complete. Give --records, or a folder with records by --data-dir.")
    bench = Bench(loaded, arguments.max_nodes)
    bench.warm_up(cases[arguments.records :])
    run(bench, cases[: arguments.records], arguments.single_every)
    compared = [case.request for case in cases[: arguments.comparisons]]
    theirs = TheirPromptLookup(arguments.model, arguments.threads) if compared else None
    compared_ratio = None if theirs is None else theirs.ratio(bench.engine, bench.drafters, compared)
    print_table(bench)
    figures = summary(bench) | {
        "ratio_transformers_prompt_lookup": compared_ratio,
        "model": loaded.name,
        "device": loaded.device,
        "minutes": (time.perf_counter() - started) / 60,
    }
    print(json.dumps({"benchmark": "drafting", **figures}))


if __name__ == "__main__":
    main()
