"""`python -m benchmarks.gpu_replay MODEL`: whole requests of real editing, with a real model on this machine's device.

The sessions of `benchmarks.typing` are typed without pauses. Every few keys, an engine with drafts and one without get
the same request in turn. `--shape 7B` computes each pass by random weights in that shape as well, whose time counts in
place of the model's: so a size that is not at hand is timed on the steps of real text. `drafts_speedup` is the time of
all requests without drafts over that with them, `lookup_ratio` that of transformers' prompt lookup over ours. The last
line is JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from benchmarks.data import read_records
from benchmarks.figures import percentile, ratio, rounded
from benchmarks.typing.scripts import Script, choose, release_scripts
from benchmarks.typing_ablation import questions
from completion.backend import BACKENDS, Backend
from completion.cancellation import CancelToken
from completion.engine import Engine, product_settings
from completion.model.causal_model import CausalModel
from completion.model.loading import LoadedModel, load_model
from completion.request import CompletionEvent, CompletionRequest

DRAFTS, PLAIN = "with drafts", "without drafts"


@dataclass(slots=True)
class Times:
    """Times of the requests of one row that showed text, in milliseconds from the request.

    Attributes:
        first_text: To the first text.
        first_line: To the end of the first line.
        whole: To the end.
        tokens: Generated tokens of each.
        steps: Decoding steps of each.
    """

    first_text: list[float] = field(default_factory=list)
    first_line: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)


def ask(engine: Engine, request: CompletionRequest, times: Times, clock: Callable[[], float]) -> None:
    """Send one request and note its times, if it shows text."""
    started, last = clock(), CompletionEvent(())
    first = line = 0.0
    for last in engine.complete(request, CancelToken()):
        now = 1e3 * (clock() - started)
        text = last.suggestions[0].text if last.suggestions else ""
        first = first or now * bool(text)
        line = line or now * bool(text and ("\n" in text or last.done))
    if last.suggestions and last.statistics is not None:
        times.first_text.append(first)
        times.first_line.append(line)
        times.whole.append(1e3 * (clock() - started))
        times.tokens.append(last.statistics.generated_tokens)
        times.steps.append(last.statistics.steps)


def run(
    loaded: LoadedModel, scripts: Sequence[Script], every: int, most: int, clock: Callable[[], float]
) -> dict[str, Times]:
    """Type all sessions. The rows take turns in going first. The cache of a file is warm before its first request."""
    rows = {DRAFTS: Times(), PLAIN: Times()}
    engines = {row: Engine(loaded, product_settings()) for row in rows}
    for script in scripts:
        for turn, (question, _) in enumerate(questions(script, every, most)):
            request = replace(question, suggestions=1)
            for row in sorted(rows, reverse=bool(turn % 2)):
                asked = replace(request, drafting=row == DRAFTS)
                if turn == 0:
                    engines[row].prepare(asked, CancelToken())
                ask(engines[row], asked, rows[row], clock)
    return rows


def figures(rows: dict[str, Times]) -> dict[str, float | None]:
    """Return the figures by name, None where there is no data, and print them."""
    drafts, plain = rows[DRAFTS], rows[PLAIN]
    found: dict[str, float | None] = {
        "requests": len(drafts.whole),
        "first_text_p50_ms": percentile(drafts.first_text, 0.5),
        "first_line_p50_ms": percentile(drafts.first_line, 0.5),
        "whole_p50_ms": percentile(drafts.whole, 0.5),
        "drafts_speedup": ratio(sum(plain.whole), sum(drafts.whole)),
        "tokens_per_step": ratio(sum(plain.tokens), sum(drafts.steps)),  # the last drafted step may pass the end
        "ms_per_step": ratio(sum(drafts.whole), sum(drafts.steps)),
    }
    for name, value in found.items():
        print(f"{name:>20} {'–' if value is None else f'{value:.2f}'}")
    return found


def lookup_ratio(name: str, loaded: LoadedModel, requests: Sequence[CompletionRequest]) -> float | None:
    """Return the median of the time of transformers' prompt lookup over ours; see `TheirPromptLookup.ratio`."""
    from benchmarks.drafting.transformers_lookup import TheirPromptLookup
    from completion.decoding.step_costs import make_drafters

    drafters = make_drafters(loaded, product_settings().max_nodes)
    engine = Engine(loaded, product_settings(), drafters)
    return TheirPromptLookup(name, None, loaded.device).ratio(engine, drafters, requests)


def in_shape(loaded: LoadedModel, size: str) -> tuple[LoadedModel, Callable[[], float]]:
    """Return a model that takes the time of random weights in a shape, and the clock that counts it."""
    import torch

    from benchmarks.gpu.in_shape import InShape
    from benchmarks.gpu.weights import SHAPES, random_weights
    from completion.model.dense.cuda_graphs import GraphedTransformer
    from completion.model.dense.kernels.choice import kernels_for

    device = loaded.device.partition(":")[0]
    weights = random_weights(SHAPES[size], torch.bfloat16, device)
    kernels = kernels_for(SHAPES[size], device, int8_cache=False)
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    both = InShape(loaded.model, GraphedTransformer(SHAPES[size], weights, kernels=kernels), wait)
    model = cast("CausalModel", both)  # whose caches cannot be assigned a length, as the interface would allow
    return replace(loaded, model=model, digest=f"{loaded.digest} {size}"), both.clock


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu_replay",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", nargs="?", default="default", help="name, folder or .gguf file (default: %(default)s)")
    parser.add_argument(
        "--backend", choices=BACKENDS, default="auto", help="implementation that runs the model (default: %(default)s)"
    )
    parser.add_argument(
        "--shape", choices=("0.5B", "1.5B", "7B"), help="count the time of random weights in this shape"
    )
    parser.add_argument("--lookup", action="store_true", help="compare with the prompt lookup of transformers")
    parser.add_argument("--data-dir", help="folder of the data")
    parser.add_argument("--sessions", type=int, default=16, help="number of files to type in (default: %(default)s)")
    parser.add_argument("--every", type=int, default=7, help="keys between two requests (default: %(default)s)")
    parser.add_argument("--questions", type=int, default=8, help="most requests of a session (default: %(default)s)")
    options = parser.parse_args()
    backend: Backend = options.backend
    loaded = load_model(options.model, backend=backend)
    print(f"{loaded.name} on {loaded.device}, {loaded.plan or 'on the processor'}. {loaded.remark}")
    scripts = choose(
        release_scripts(read_records("open_release_replay.jsonl.gz", options.data_dir), 100), [], options.sessions, 1
    )
    shaped, clock = in_shape(loaded, options.shape) if options.shape else (loaded, time.perf_counter)
    found = figures(run(shaped, scripts, options.every, options.questions, clock))
    if options.lookup:
        asked = [request for script in scripts for request, _ in questions(script, 50, 1)]
        requests = [replace(one, suggestions=1) for one in asked]
        found["lookup_ratio"] = lookup_ratio(options.model, loaded, requests) if requests else None
    facts = {"model": loaded.name, "device": loaded.device, "shape": options.shape or ""}
    print(json.dumps(facts | {name: rounded(value, 3) for name, value in found.items()}))


if __name__ == "__main__":
    main()
