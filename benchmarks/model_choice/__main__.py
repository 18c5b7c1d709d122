"""`python -m benchmarks.model_choice`: forecasts of first text against measured ones, and what described machines get.

For each form of the weights and number of threads, both models serve a person who types the same sessions, and are
asked at each key that does not follow what they suggested. A wait ends with the first text that the language server
shows. Before each session the default model's passes are measured as at a start of the engine. The forecasts are
`completion.model.choice`'s, from the medians of these passes. Times are processor times, so that other programs add
little: a pass counts by the number of threads, all else whole. An error is that of the forecast over the measured
median, both ways; `largest_error` is the largest of all.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.data import read_records
from benchmarks.model_choice.machines import MACHINES
from benchmarks.quality.sets import half_of
from benchmarks.typing.scripts import Script, choose, release_scripts
from benchmarks.worth.places import keys, opening
from completion.backend import Backend
from completion.cancellation import CancelToken
from completion.decoding.step_costs import measure_costs
from completion.engine import Engine, product_settings
from completion.model.choice import KNOWN, KnownModel, Measured
from completion.model.loading import load_model
from completion.request import Closing, CompletionRequest
from lsp_server.gate.worth import worthwhile_end

MAX_NODES = 16
"""Largest tree of a measurement, the engine's."""
_SIZES = (0, 1, 2, 3, 4)


class TimedModel:
    """A model that notes the processor time of its passes.

    Attributes:
        passes_s: Their sum, in seconds.
        rows: Their rows.
    """

    def __init__(self, model: Any) -> None:  # noqa: ANN401 - all that is not timed is the model's own
        self._model = model
        self.passes_s, self.rows = 0.0, list[int]()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        found = getattr(self._model, name)
        return self._timed(found) if name in {"prefill", "score", "score_together"} else found

    def _timed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def run(first: Sequence[Any], *others: Any, **named: Any) -> Any:  # noqa: ANN401
            started = time.process_time()
            result = method(first, *others, **named)
            self.passes_s += time.process_time() - started
            self.rows.append(len(first) if method.__name__ != "score_together" else sum(len(p.tokens) for p in first))
            return result

        return run


class Contender:
    """One model in the product's engine."""

    def __init__(self, known: KnownModel, form: Backend, threads: int) -> None:
        loaded = load_model(known.spec, backend=form, threads=threads, gpu_memory_share=0.0)
        self.known, self._threads = known, threads
        self._timed = TimedModel(loaded.model)
        self._engine = Engine(replace(loaded, model=self._timed), product_settings())
        self.first_text_ms, self.other_ms, self.rows = list[float](), list[float](), list[list[int]]()
        self.costs_ms: list[Sequence[float]] = []

    def measure(self) -> None:
        """Measure passes as a start of the engine does, in processor time over the number of threads."""
        costs = measure_costs(self._timed, MAX_NODES, _SIZES, 1, time.process_time)
        self.costs_ms.append([float(cost) / self._threads for cost in costs.costs_ms])

    def serve(self, script: Script) -> None:
        """Serve a person who types a session."""
        self._engine.prepare(opening(script), CancelToken())
        left = ""
        for key in keys(script):
            left = left or self._answer(key.request)
            left = left.removeprefix(key.unit) if left.startswith(key.unit) else ""
        self._engine.forget(Closing(documents=(script.id,)))

    def _answer(self, request: CompletionRequest) -> str:
        """Answer a request, and note the wait if any of its text is shown; return all of that text."""
        self._timed.passes_s, self._timed.rows, started, is_shown, text = 0.0, [], time.process_time(), False, ""
        for event in self._engine.complete(request, CancelToken()):
            for suggestion in event.suggestions[:1]:
                text = suggestion.text
                end = worthwhile_end(suggestion, 0, grows=not event.whole)
                if text[:end].strip() and not is_shown:
                    is_shown, passes_s = True, self._timed.passes_s
                    other_s = time.process_time() - started - passes_s
                    self.first_text_ms.append(1e3 * (passes_s / self._threads + other_s))
                    self.other_ms.append(1e3 * other_s)
                    self.rows.append(list(self._timed.rows))
        return text if is_shown else ""

    def measured(self, form: Backend) -> Measured:
        """Return the medians of the measured passes."""
        medians = tuple(map(statistics.median, zip(*self.costs_ms, strict=True)))
        return Measured(self.known.name, form, "cpu", self._threads, medians)


def compared(scripts: Sequence[Script], form: Backend, threads: int) -> list[dict[str, Any]]:
    """Return the forecast and the measured first text of both models in one form, with a number of threads."""
    small, larger = contenders = [Contender(known, form, threads) for known in KNOWN[:2]]
    for script in scripts:
        small.measure()
        for contender in contenders:
            contender.serve(script)
    measured = small.measured(form)
    rows = []
    for contender in (small, larger):
        forecast_ms = measured.first_text_ms(contender.known)
        found_ms = statistics.median(contender.first_text_ms)
        rows.append(
            {
                "model": contender.known.name,
                "form": form,
                "threads": threads,
                "forecast_ms": round(forecast_ms, 1),
                "measured_ms": round(found_ms, 1),
                "other_ms": round(statistics.median(contender.other_ms), 1),
                "rows_of_passes": [
                    round(statistics.mean(map(sum, contender.rows)), 1),
                    round(statistics.mean(map(len, contender.rows)), 1),
                ],
                "pass_ms": [round(cost, 1) for cost in measured.costs_ms[:4]],
                "error": round(max(forecast_ms / found_ms, found_ms / forecast_ms) - 1, 3),
                "places": len(contender.first_text_ms),
            }
        )
        print(json.dumps(rows[-1]), flush=True)
    return rows


def choices() -> list[dict[str, Any]]:
    """Return what each described machine gets."""
    return [
        {
            "machine": each.what,
            "model": (choice := each.choice()).model.name,
            "offer": choice.offer.name if choice.offer else "",
            "remark": choice.remark,
            "forecasts_ms": {name: round(ms) for name, ms in choice.forecasts_ms.items()},
        }
        for each in MACHINES
    ]


def main() -> None:
    """Print each comparison, then one line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model_choice", description=__doc__)
    parser.add_argument("--sessions", type=int, default=8, help="number of sessions (default: %(default)s)")
    parser.add_argument("--characters", type=int, default=100, help="characters of a session (default: %(default)s)")
    parser.add_argument("--half", type=int, default=1, help="half of the data (default: %(default)s)")
    parser.add_argument("--threads", default="1,2", help="numbers of threads, comma-separated (default: %(default)s)")
    parser.add_argument("--forms", default="q4,int8", help="forms of the weights (default: %(default)s)")
    parser.add_argument("--data-dir", help="folder of the data")
    options = parser.parse_args()
    found = release_scripts(read_records("open_release_replay.jsonl.gz", options.data_dir), options.characters)
    scripts = choose([one for one in found if half_of(one.id) == options.half], [], options.sessions, 7)
    rows = [
        row
        for form in options.forms.split(",")
        for threads in map(int, options.threads.split(","))
        for row in compared(scripts, form, threads)
    ]
    largest = max(row["error"] for row in rows)
    print(json.dumps({"benchmark": "model_choice", "largest_error": largest, "rows": rows, "choices": choices()}))


if __name__ == "__main__":
    main()
