"""`python -m benchmarks.two_models`: what a second model is worth, as a drafter or as one of two that answer.

`--parts layers` lets parts of the model draft for it: its first layers (early exit), and all but some layers, which are
chosen on half 0. `--parts drafter` lets `--model` draft for `--larger`. Both take the suites of benchmarks.drafting.
The table has the drafter's step over the model's, the share of its tokens that the model accepts in chains of 1 to 5,
the best chain on half 0 (length, probability under which it ends), and the time without drafts over that with them on
half 1: with chains alone, with chains where the existing drafters propose nothing (`added`), and the most that any rule
could reach (`least`). Times are processor times of steps, the least of several that take turns.

`--parts head` lets a head draft that was trained on the model's states over the source files of `--sources`; its step
is reckoned from the cost of the model's layers.

`--parts choice` answers places of half 1 of `--sets` with each model by itself. The table has the right first lines of
both, and an interval of 90 % around their difference. Prompts are as long as the product's are on this machine, or with
`--full-prompts` as long as on a quick one. `--out FILE` writes each place at once; a later run makes only the missing.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import torch

from benchmarks.quality.sets import SETS, half_of, open_tasks
from benchmarks.quality.tasks import Task, distinct, sample
from benchmarks.two_models.as_drafter import head_figures, layer_figures, small_figures
from benchmarks.two_models.choosing import Contender, Place, answers_at, choice_figures
from benchmarks.two_models.head import Head, States, frequent_tokens
from benchmarks.two_models.head_training import Corpus, train
from completion.model.int8.packed_weights import PackedWeights, load_packed
from completion.model.int8.quantized import QuantizedTransformer
from completion.model.int8.worker_threads import usable_threads
from completion.model.loading import LoadedModel, load_model
from completion.model.store.converted_models import packed_dir

PARTS = ("layers", "drafter", "choice", "head")
"""Parts of the benchmark, which can run one by one."""
PLACE_SETS = "release_replay,cursor_positions,repo_context"
"""Data sets of the places."""


def main() -> None:
    """Print the tables, then one line of JSON."""
    options = _options()
    started = time.perf_counter()
    figures: dict[str, object] = {"benchmark": "two_models"}
    if "layers" in options.parts:
        loaded, weights = shared_weights(options.model, options.threads)
        threads = options.threads or usable_threads()
        figures["layers"] = layer_figures(loaded, weights, options.data_dir, options.limit, options.repeats, threads)
    if "drafter" in options.parts:
        larger, small = load_both(options)
        figures["drafter"] = small_figures(larger, small, options.data_dir, options.limit, options.repeats)
    if "head" in options.parts:
        loaded, weights = shared_weights(options.model, options.threads)
        states = States(weights, options.threads or usable_threads())
        head = head_of(options, loaded, states)
        figures["head"] = head_figures(loaded, states, head, options.data_dir, options.limit, options.repeats)
    if "choice" in options.parts:
        tasks = places(options.sets.split(","), options.data_dir, options.limit)
        models = f"{options.model}, {options.larger}{', full prompts' * options.full_prompts}"

        def contenders() -> list[Contender]:
            return [Contender(each, full_prompts=options.full_prompts) for each in reversed(load_both(options))]

        found = answers_at(tasks, contenders, options.out, models)
        figures["choice"] = choice_figures([Place.of(*each) for each in zip(tasks, found, strict=True)])
    print(json.dumps({**figures, "minutes": round((time.perf_counter() - started) / 60, 1)}))


def load_both(options: argparse.Namespace) -> tuple[LoadedModel, LoadedModel]:
    """Return the larger and the small model."""
    larger, small = (load_model(spec, threads=options.threads) for spec in (options.larger, options.model))
    return larger, small


def shared_weights(spec: str, threads: int | None) -> tuple[LoadedModel, PackedWeights]:
    """Return a model, and its weights, which models of some of its layers share.

    Raises:
        SystemExit: The model does not run as int8 or q4 on the processor.
    """
    loaded = load_model(spec, threads=threads, gpu_memory_share=0.0)
    if not isinstance(loaded.model, QuantizedTransformer):
        raise SystemExit(f"{spec} does not run as int8 or q4 here, so its layers cannot be skipped.")
    weights = load_packed(loaded.folder, packed_dir(), loaded.model.form)
    return replace(loaded, model=QuantizedTransformer(weights, threads or usable_threads())), weights


def head_of(options: argparse.Namespace, loaded: LoadedModel, states: States) -> Head:
    """Return the head in a file; train it and write the file if there is none."""
    head = Head(states, frequent_tokens(loaded.tokenizer))
    if options.head.exists():
        head.load_state_dict(torch.load(options.head))
    else:
        corpus = Corpus.read(states, loaded.tokenizer, options.sources, options.positions)
        train(head, states, corpus, options.epochs)
        torch.save(head.state_dict(), options.head)
    return head


def places(names: list[str], data_dir: str | None, limit: int) -> list[Task]:
    """Return at most `limit` places of half 1 of each data set and language; a lower limit returns the first of them.

    Raises:
        SystemExit: There are none.
    """
    tasks = [task for task in distinct(open_tasks(names, data_dir)) if half_of(task.id) == 1]
    if not (found := sample(tasks, limit)):
        raise SystemExit("There is no place of half 1. Raise --limit, or give other --sets.")
    return found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.two_models", description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS[:3]), help="parts, comma-separated (default: %(default)s)")
    parser.add_argument("--model", default="default", help="the small model")
    parser.add_argument("--larger", default="qwen2.5-coder-1.5b", help="the larger model")
    parser.add_argument("--data-dir", help="folder of the data")
    parser.add_argument(
        "--limit",
        type=int,
        default=24,
        help="number of texts of each half; for choice, of places of each data set and language",
    )
    parser.add_argument("--threads", type=int, help="threads of the model; the engine chooses if it is not given")
    parser.add_argument("--repeats", type=int, default=20, help="number of timings of each step (default: %(default)s)")
    parser.add_argument("--sets", default=PLACE_SETS, help="data sets of the places: " + ", ".join(SETS))
    parser.add_argument("--full-prompts", action="store_true", help="prompts of full length, for choice")
    parser.add_argument("--out", type=Path, help="file of the places' answers; an existing file is continued")
    parser.add_argument("--head", type=Path, help="file of the trained head; an existing file is used")
    parser.add_argument("--sources", nargs="+", type=Path, default=[], help="folders of source code for its training")
    parser.add_argument("--positions", type=int, default=236_000, help="number of its tokens (default: %(default)s)")
    parser.add_argument("--epochs", type=float, default=5.0, help="how often each is seen (default: %(default)s)")
    given = parser.parse_args()
    given.parts = given.parts.split(",")
    if "head" in given.parts and given.head is None:
        parser.error("--parts head needs --head FILE")
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}; known: {', '.join(PARTS)}")
    return given


if __name__ == "__main__":
    main()
