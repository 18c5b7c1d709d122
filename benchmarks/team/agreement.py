"""`python -m benchmarks.team.agreement`: whether a model server gives the local engine's suggestions, with open data.

Both complete the same cursors with the same weights. Then it asks the server for text that must start with forced
bytes, for completions without and with the grammar, and cancels streams, whose end vLLM's own metrics tell. On a
processor all of it takes hours; `--parts` measures some. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any

from rich.progress import track

from benchmarks.figures import percentile, ratio, rounded
from benchmarks.grammar.completions import Outcome, complete, open_requests
from benchmarks.quality.rows import ROWS
from benchmarks.quality.scoring import score
from benchmarks.quality.sets import open_tasks
from benchmarks.quality.tasks import Task
from benchmarks.team.vllm_process import READY_S, VllmProcess, metrics_at
from completion.cancellation import CancelToken
from completion.completer import Completer
from completion.engine import Engine, product_settings
from completion.model.loading import load_model
from completion.model.store.gguf_source import with_safetensors
from completion.model.store.model_store import prepare
from completion.progress import silent
from completion.prompt.healing import heal
from completion.remote import connection
from completion.remote.address import RemoteAddress
from completion.remote.engine import RemoteEngine, RemoteModel
from completion.remote.model_server import Query
from completion.request import GrammarMode
from completion.workspace.context import WorkspaceContext

_SETS = ("mid_line", "cursor_positions", "single_line")
_FORCED_TOKENS = 32
_NEAR_CHARACTERS = 1_000  # before the cursor: what stands above them forces nothing, and takes a processor seconds
_LONG = 512
_WANTED_S = 10.0


def cursors(count: int, seed: int, data_dir: str | None, *, in_word: bool = False) -> list[Task]:
    """Return cursors of open data in a random order, within words only or anywhere."""
    tasks = [task for task in open_tasks(list(_SETS), data_dir) if not in_word or _is_in_word(task)]
    return random.Random(seed).sample(tasks, min(count, len(tasks)))


def _is_in_word(task: Task) -> bool:
    return task.prefix[-1:].isalnum() and task.reference[:1].isalnum()


def texts(engine: Completer, tasks: Iterable[Task]) -> list[str]:
    """Return the text that an engine inserts at each cursor, "" for nothing."""
    found = []
    for task in tasks:
        request = ROWS["whole_no_context"].request(task, WorkspaceContext(), 0)
        *_, last = engine.complete(request, CancelToken())
        found.append(task.inserted(last.suggestions[0]) if last.suggestions else "")
    return found


def exact(tasks: Sequence[Task], found: Sequence[str]) -> int:
    """Return how many texts equal their references."""
    return sum(score(text, task.reference, None).exact_match == 1 for task, text in zip(tasks, found, strict=True))


def kept(model: RemoteModel, tasks: Sequence[Task]) -> int:
    """Return at how many cursors the server's own text starts with the run before the cursor."""
    tokenizer, found = model.tokenizer, 0
    for task in track(tasks, "forced bytes"):
        healed = heal(task.prefix[-_NEAR_CHARACTERS:])
        prompt = tokenizer.encode(healed.shown or "\n")  # servers refuse an empty one; prompts with markers never are
        query = Query(prompt, _FORCED_TOKENS, healed.forced)
        written = b"".join(tokenizer.token_bytes(each.token) for each in model.server.generate(query, CancelToken()))
        found += written.startswith(healed.forced)
    return found


def errors(engine: Completer, count: int, data_dir: str | None) -> dict[GrammarMode, Outcome]:
    """Complete cursors of all languages without and with the grammar, and return what became of them."""
    found = {mode: Outcome() for mode in (GrammarMode.OFF, GrammarMode.STRICT)}
    for request, reference in track(list(open_requests(count, data_dir)), "grammar"):
        for mode, outcome in found.items():
            outcome.add(complete(engine, request, reference, mode))
    return found


def cancelled_ms(model: RemoteModel, url: str, count: int) -> list[float]:
    """Cancel streams of a server that serves nobody else; return the times until its metrics show none running."""
    prompt, found = model.tokenizer.encode("def f(a, b):\n"), []
    for _ in range(count):
        with closing(model.server.generate(Query(prompt, _LONG), CancelToken())) as generated:
            next(generated)
            started = time.perf_counter()
        while metrics_at(url)["vllm:num_requests_running"]:
            if time.perf_counter() - started > _WANTED_S:
                raise SystemExit(f"vLLM still computes {_WANTED_S:g} s after a disconnect.")
        found.append(1e3 * (time.perf_counter() - started))
    return found


def compared(tasks: Sequence[Task], ours: Sequence[str], theirs: Sequence[str]) -> dict[str, float | None]:
    """Return how often the texts of both engines are right, and how often they are the same, by name."""
    counts = {
        "exact_local": exact(tasks, ours),
        "exact_remote": exact(tasks, theirs),
        "same_text": sum(map(str.__eq__, ours, theirs)),
    }
    return {"cursors": len(tasks)} | {name: rounded(ratio(count, len(tasks)), 4) for name, count in counts.items()}


def times(cancelled: Sequence[float]) -> dict[str, float | None]:
    """Return the figures of the times of `cancelled_ms` by name."""
    return {
        "cancelled_p50_ms": rounded(percentile(cancelled, 0.5), 1),
        "cancelled_max_ms": rounded(percentile(cancelled, 1.0), 1),
    }


def text_figures(options: argparse.Namespace, model: RemoteModel, *, in_word: bool = False) -> dict[str, Any]:
    """Complete cursors here and on the server, and return the figures of their texts by name."""
    tasks = cursors(options.cursors, options.seed, options.data_dir, in_word=in_word)
    local = Engine(load_model(options.model), product_settings())
    ours = texts(local, track(tasks, "here"))
    return compared(tasks, ours, texts(RemoteEngine(model), track(tasks, "on the server")))


def in_word_figures(options: argparse.Namespace, model: RemoteModel) -> dict[str, Any]:
    """Return what `text_figures` returns, of cursors within words."""
    return {f"{name}_in_word": value for name, value in text_figures(options, model, in_word=True).items()}


def forced_figures(options: argparse.Namespace, model: RemoteModel) -> dict[str, Any]:
    """Return how often the server's own text starts with the run before a cursor within a word."""
    tasks = cursors(options.cursors, options.seed, options.data_dir, in_word=True)
    return {"forced_cursors": len(tasks), "forced_kept": rounded(ratio(kept(model, tasks), len(tasks)), 4)}


def grammar_figures(options: argparse.Namespace, model: RemoteModel) -> dict[str, Any]:
    """Return how many of the server's completions break the file, without and with the grammar."""
    outcomes = errors(RemoteEngine(model), options.completions, options.data_dir)
    without, strict = outcomes[GrammarMode.OFF], outcomes[GrammarMode.STRICT]
    found = {"completions": strict.records, "errors_without": without.worse, "errors_with": strict.worse}
    return found | {"error_reduction": round(1 - strict.worse / without.worse, 4) if without.worse else None}


def cancel_figures(options: argparse.Namespace, model: RemoteModel) -> dict[str, Any]:
    """Return how long vLLM computes for cancelled streams."""
    return times(cancelled_ms(model, options.url, options.cancels))


_CANCELS = "cancels"
_PARTS = {
    "text": text_figures,
    "in_word": in_word_figures,
    "forced": forced_figures,
    "grammar": grammar_figures,
    _CANCELS: cancel_figures,
}


def run(options: argparse.Namespace, model: RemoteModel) -> dict[str, Any]:
    """Measure the parts that are asked for, and return their figures by name; print them at the end of each part."""
    found: dict[str, Any] = {}
    for part in options.parts:
        found |= _PARTS[part](options, model)
        print(found, flush=True)
    return found


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.team.agreement", description=__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--vllm-python", default="", metavar="PATH", help="python with vLLM, to start it")
    which.add_argument("--url", default="", help="address of a server that runs already with the weights of --model")
    parser.add_argument(
        "--kind", default="vllm", choices=("vllm", "llama-server"), help="what listens there (default: %(default)s)"
    )
    parser.add_argument("--token-file", default="", help="file with the token of that server")
    parser.add_argument("--model", default="default", help="model that is measured (default: %(default)s)")
    parser.add_argument("--cursors", type=int, default=300, help="number of cursors (default: %(default)s)")
    parser.add_argument(
        "--completions", type=int, default=20, help="completions of each data set and language (default: %(default)s)"
    )
    parser.add_argument("--cancels", type=int, default=50, help="number of cancelled streams (default: %(default)s)")
    parser.add_argument(
        "--parts", nargs="+", choices=_PARTS, help="what is measured (default: all; no cancels of a llama-server)"
    )
    parser.add_argument("--data-dir", help="folder of the data")
    parser.add_argument("--seed", type=int, default=1, help="seed of what is random (default: %(default)s)")
    options = parser.parse_args()
    if _CANCELS in (options.parts or ()) and options.kind != "vllm":
        parser.error(f"--parts {_CANCELS} needs vLLM, whose metrics tell when a stream has ended.")
    options.parts = options.parts or [part for part in _PARTS if part != _CANCELS or options.kind == "vllm"]
    connection.SILENCE_S = READY_S  # texts are compared, and a processor computes a long prompt for long
    server = (
        VllmProcess(options.vllm_python, with_safetensors(prepare(options.model).folder))
        if options.vllm_python
        else None
    )
    try:
        if server:
            server.start()
            options.url = server.url
        address = RemoteAddress(options.url, options.kind, options.token_file)
        model = RemoteModel.connect(address, options.model, silent, CancelToken())
        print(json.dumps({"server": model.facts.software} | run(options, model)))
    finally:
        if server:
            server.stop()


if __name__ == "__main__":
    main()
